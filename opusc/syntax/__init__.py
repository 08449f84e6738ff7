"""From text to syntax tree, and back to canonical text."""
