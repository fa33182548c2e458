"""Sessions of recording, and what becomes of what they recorded.

Runs in the controller. How a trace is looked at is not known here.
"""
