"""Calls of functions and of the system, and what they touched."""
