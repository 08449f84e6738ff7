"""The command line: thin commands over the driver, the renderers and the backends."""
