"""From a journal back to what was recorded, and to a trace.

Runs in the controller, when the target has ended or clew was cut off; parts of it in the live viewer's process.
"""
