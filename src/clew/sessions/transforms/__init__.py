"""Code that is changed as it is translated: what a transformer sees of a block, and what becomes of what it says.

Runs in the controller.
"""
