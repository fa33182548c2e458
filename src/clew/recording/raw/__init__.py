"""What a recording brings before anything is put together: plain data, and pieces of records and paths.

Runs in the controller. Which file it comes from is not known here.
"""
