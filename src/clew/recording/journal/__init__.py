"""The journal of a recording: how what comes from the target is kept, and read back frame by frame.

Runs in the controller. What records mean is not known here.
"""
