"""What the runtime told, by column: fragments, links, edges; in which state and version code was; bundles.

Runs in the controller, after the target ended, and for a live view. Pure.
"""
