"""Probes in code of x86-64: which bytes a jump may replace, and copies of what it displaces."""
