"""The tables of a trace, as the store has them.

Runs in the controller, after the target ended, and for a live view. Pure.
"""
