"""One run of recording, from what is asked to the trace.

Runs in the controller. How a trace is looked at is not known here.
"""
