"""Ordered paths, finished: what is left in buffers, checkpoints with their numbers of instructions.

Runs in the controller, after the target ended, and for a live view. Pure.
"""
