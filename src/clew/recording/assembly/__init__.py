"""From what a session recorded to the tables of a trace.

Runs in the controller, after the target ended, and for a live view again and again while it runs. Pure, but for reading
the files of images and writing the tables. Nothing here knows a process that runs.
"""
