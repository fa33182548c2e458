"""Processors: what the controller must know of one to hold, enter and leave its threads. One module each."""
