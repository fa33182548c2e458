"""Commands to a recording that goes on: who gives them, who listens, what is done.

Runs in the controller, and in whoever speaks to it.
"""
