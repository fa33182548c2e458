"""What is asked of a recording: words of people and of Python made values, filters, the directory of the trace.

Runs in the controller. Nothing here knows a process or what it brings.
"""
