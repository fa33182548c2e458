"""Events of probes in files: as traces of LTTng-UST, as text, for other viewers, as tables, as trees of calls.

Runs in the controller. Takes typed events and writes: what a process is, and how events come about, is not known here.
"""
