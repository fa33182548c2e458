"""Programs that are followed from Python: sessions, their threads, call probes.

Runs in the controller, and in whatever threads the caller has. One thread of clew's own owns the target; what others
ask it does in its loop.
"""
