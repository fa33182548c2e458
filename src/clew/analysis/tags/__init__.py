"""Tags of blocks (mode region)."""
