"""From model to plan: ranks, groups, topologies, ports, parts and transitions, as integers in arrays."""
