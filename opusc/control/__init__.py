"""What talks to switches, and what compares them with the program."""
