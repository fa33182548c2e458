"""Tables of a trace as arrays, process by process."""
