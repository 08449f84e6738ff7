"""Writers: one module a format, each with its refusals, its projection and a reader of its own."""
