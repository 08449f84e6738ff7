"""A controller that serves a running job: the published controller's protocol in front of a proved plan.

`protocol` reads and writes its lines, `hosts` knows who a connection is, `scopes` finds the parts that a communicator
asks for, `circuits` the change of a rail, `rails` makes it when nobody is in the way, on emulated switches or `real`
ones; `server` brings `clients` and rails together, `metrics` counts.
"""
