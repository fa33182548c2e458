"""The processes of a recording while they run: who is followed, how they come, are stopped, are left and end.

Runs in the controller, in one thread.
"""
