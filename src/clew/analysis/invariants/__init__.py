"""What holds in every trace: `clew verify`."""
