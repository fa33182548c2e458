"""Where probes are: what people write for a place in code, and which places in files and processes that means."""
