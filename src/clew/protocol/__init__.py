"""What the runtime and the controller share, as bytes: layouts, records, numbers.

Runs in the controller. Pure: no process and no file of a trace is known here.
"""
