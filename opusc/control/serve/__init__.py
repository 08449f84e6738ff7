"""A controller that serves a running job: the published controller's protocol in front of a proved plan.

`protocol` reads and writes its lines, `scopes` finds the parts that a communicator asks for, `rails` changes the
switches of a rail, one change after another, `server` knows the clients, `metrics` counts.
"""
