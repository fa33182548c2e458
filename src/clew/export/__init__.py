"""Traces in other tools' formats: one file for each.

Runs in the controller. Reads traces; how they were recorded is not known here.
"""
