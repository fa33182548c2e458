"""Other tools that follow or count what a program runs, measured on the same work as clew."""
