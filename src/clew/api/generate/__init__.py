"""Makes clew's own descriptions of system calls out of what was captured from a kernel and its headers.

Runs on a developer's machine; nothing of it is needed when clew runs.
"""
