"""What followed threads do, as it happens: calls, returns, blocks and instructions out of their paths (mode `full`).

Runs in the controller: a sink takes what the rings bring, a thread of clew's own makes events of it.
"""
