"""What is mapped where, and which images of files are among it.

Runs in the controller, after the target ended, and for a live view. Pure, but for reading the files of images.
"""
