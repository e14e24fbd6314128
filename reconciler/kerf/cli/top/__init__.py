"""The terminal view of `kerf top`.

state.py      the keys and their effect: view, order, filter, selected row
pods.py       the pods of one node as text
drawing.py    the state as lines of a terminal
keyboard.py   keys of a terminal, one at a time
"""
