"""Reading what exists: configurations that somebody wrote by hand, and what they really connect.

`configurations` reads them, `cables` says whose port a switch port is, `lint` looks at the circuits.
"""
