"""Architectures: what machine code in a file or a trace means. One module each, and nothing of them elsewhere."""
