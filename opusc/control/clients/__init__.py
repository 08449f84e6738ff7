"""One client for each transport. What a client needs beyond Python is imported when a switch of its kind is opened."""
