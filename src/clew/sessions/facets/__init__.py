"""What a session offers, by subject: the parts that `Session` is made of.

Runs in the controller, in whatever threads the caller has.
"""
