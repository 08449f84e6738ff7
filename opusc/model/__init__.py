"""From syntax tree to model: names resolved, quantities exact, parameters expanded, rules checked."""
