"""What ran the most: `clew report`."""
