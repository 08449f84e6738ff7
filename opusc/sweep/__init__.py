"""Sweeps: one program, many values of its parameters.

`points` spans the grid, `measure` compiles and estimates one point, `engines` runs points in parallel, `journal` keeps
what is done so that a sweep can be gone on with, `tables` writes it down.
"""
