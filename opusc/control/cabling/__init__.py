"""Cabling as built: what was observed, compared with what the program assumes."""
