"""Who may ask the server what: the right host, the right origin, and for data the token.

Runs in the controller. The page itself holds no data and is given to whoever names the right host; everything under
/api/ needs the token, which the page has from its address' fragment: browsers send that to nobody. A page of another
site can neither read it nor make the browser send it (fetch standard, "CORS protocol"), and a name that was bound to
this address by someone else (DNS rebinding) does not pass as host. Ports are not looked at: a tunnel has its own. The
same is asked of whoever opens a WebSocket, with the token among the subprotocols that it offers.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["SUBPROTOCOL", "Guard", "HostNames"]

SUBPROTOCOL: Final = "clew.live"
"""What a page asks for when it opens a WebSocket, and beside it `TOKEN_PREFIX` and the token: browsers let pages add
nothing else."""
TOKEN_PREFIX: Final = "clew.token."

_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True)
class HostNames:
    """The names that a server goes by; with `any_address` also every address, written as numbers.

    Whoever binds a name to the server's address can't make a browser send the address instead of the name.
    """

    names: frozenset[str]
    any_address: bool = False

    def accepts(self, host: str) -> bool:
        """Whether `host`, as the header has it, with or without a port, is one of them."""
        name = re.sub(r":\d{1,5}$", "", host.lower())
        if name in self.names:
            return True
        if not self.any_address:
            return False
        try:
            ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return False
        return True


class Guard:
    """ASGI middleware that answers 403 to who may not ask."""

    def __init__(self, app: ASGIApp, token: str, hosts: HostNames) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            refusal = self._find_refusal(scope, self._find_offered_token(scope))
            if refusal is not None:
                await send({"type": "websocket.close", "code": 1008, "reason": refusal})
                return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._find_refusal(scope, Headers(scope=scope).get("authorization", ""))
        if refusal is not None:
            await JSONResponse({"error": refusal}, status_code=403)(scope, receive, send_guarded)
            return
        await self._app(scope, receive, send_guarded)

    @staticmethod
    def _find_offered_token(scope: Scope) -> str:
        """The token that the opening of a WebSocket offers, as a header of HTTP would have it."""
        offered = [word for word in scope.get("subprotocols", ()) if word.startswith(TOKEN_PREFIX)]
        return f"Bearer {offered[0].removeprefix(TOKEN_PREFIX)}" if len(offered) == 1 else ""

    def _find_refusal(self, scope: Scope, authorization: str) -> str | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._hosts.accepts(hosts[0]):
            return "this server does not go by that host name"
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{hosts[0].lower()}":
            return "pages of other origins may not ask"
        if scope["path"].startswith("/api/") or scope["type"] == "websocket":
            scheme, _, given = authorization.partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.encode("utf-8", "replace"), self._token):
                return "the token is missing or wrong; open the address that `clew view` printed"
        return None
