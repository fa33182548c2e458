"""Names of sockets' addresses, for people: `127.0.0.1:80`, `[::1]:443`, `unix:/run/daemon`.

Runs in the controller.
"""

from __future__ import annotations

import socket

__all__ = ["address_name"]


def address_name(data: bytes) -> str | None:
    """What a `struct sockaddr` says (ip(7), ipv6(7), unix(7)); None: nothing that is known."""
    family = int.from_bytes(data[:2], "little")
    port = int.from_bytes(data[2:4], "big")
    if family == socket.AF_INET and len(data) >= 8:
        return f"{'.'.join(map(str, data[4:8]))}:{port}"
    if family == socket.AF_INET6 and len(data) >= 24:
        return f"[{socket.inet_ntop(socket.AF_INET6, data[8:24])}]:{port}"
    if family == socket.AF_UNIX and len(data) > 2:
        # An abstract name begins with a zero byte, and all of its bytes count.
        is_abstract = not data[2]
        name = data[3:] if is_abstract else data[2:].split(b"\0")[0]
        return f"unix:{'@' if is_abstract else ''}{name.decode(errors='replace')}"
    return None
