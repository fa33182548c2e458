"""What differs between two traces: `clew diff`."""
