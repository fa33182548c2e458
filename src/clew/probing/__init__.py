"""Probes: what is taken at places of a program that runs its own code at its own speed."""
