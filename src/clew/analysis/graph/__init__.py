"""A process as a graph of blocks, edges and functions, and its code as text."""
