"""Processes of this machine: launch, ptrace, memory maps, injection of the runtime.

Runs in the controller. What the runtime records is not known here.
"""
