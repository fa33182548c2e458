"""What a trace tells: one file for each question.

Runs in the controller. Reads traces and nothing else; how they are printed is not known here.
"""
