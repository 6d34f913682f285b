"""A year of a team, made up: its lake, written as the services would have left it.

`python -m bench.year make FOLDER [--scale S]`. The same seed and scale give the same rows.
"""
