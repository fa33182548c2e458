"""What the steps of assembling do with arrays: keys of instructions, rows by number, numbers added up.

Runs in the controller, after the target ended, and for a live view. Pure.
"""
