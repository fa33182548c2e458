"""Names and places of code."""
