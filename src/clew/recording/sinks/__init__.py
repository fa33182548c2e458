"""Who is given what a recording brings while it goes on: the interface, and several that are given the same.

Runs in the controller, beside the target. What the sinks of this program are is not known here.
"""
