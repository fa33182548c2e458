"""Which ways executions went, and how often: out of counters, leaders before followers.

Runs in the controller, after the target ended, and for a live view. Pure.
"""
