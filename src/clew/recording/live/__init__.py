"""What is seen of a recording that goes on: what the recorder tells, and what is worked out of it.

Runs in the controller: the recorder's part beside the target, the rest in the live viewer's process.
"""
