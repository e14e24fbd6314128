"""`kerf why` beside what is really wrong: worlds in which one thing is broken, and the first edit applied to them.

It knows what it broke; of Kerf it uses the answer alone. Whether an edit works is for the controller in the sandbox.
"""
