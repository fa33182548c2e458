"""Export to the files of Este, a viewer of basic blocks and of calls out of a few images.

Runs in the controller. What the files are is told in docs/este.md.
"""
