"""What calls of functions and of the system look like: descriptions in JSON files, and texts made by them.

Runs in the controller. Knows no function and no system call by name: that is what the files are for.
"""
