"""Several sessions of probes in one process: one of them has it, and has the probes of the others for them."""
