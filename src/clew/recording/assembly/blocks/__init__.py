"""Basic blocks: fragments cut wherever something enters, and joined.

Runs in the controller, after the target ended, and for a live view. Pure.
"""
