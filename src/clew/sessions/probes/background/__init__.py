"""Sessions of probes that outlive the command: a controller of each in the background, and who speaks to it."""
