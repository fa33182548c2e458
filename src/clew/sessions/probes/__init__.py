"""Probes in processes that execute their own code: what is wanted where, and the events that come of it."""
