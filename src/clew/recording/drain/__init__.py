"""What empties the shared memory of a running process, and answers what its threads ask.

Runs in the controller, beside the target. Where it goes is the business of sinks.
"""
