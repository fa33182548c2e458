"""Edges between blocks, and how often each thread took them.

Runs in the controller, after the target ended, and for a live view. Pure.
"""
