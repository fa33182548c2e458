"""The order of execution, read from paths (mode full)."""
