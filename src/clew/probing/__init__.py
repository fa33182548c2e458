"""Probes in the program's own code, in processes that are not followed: where they can be, and how they get there."""
