"""Probes in a program's own code, which is not followed: where they are, how the code leads there, and what is patched.

Runs in the controller.
"""
