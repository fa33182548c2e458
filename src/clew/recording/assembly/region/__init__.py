"""Mode `region`: tags, and what counts without them where it is busy.

Runs in the controller, after the target ended. Pure.
"""
