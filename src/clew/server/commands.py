"""What the page may have done, and not only ask for: commands by name, each a POST to /api/commands/NAME.

Runs in the controller. Who may send one the guard decides, as for everything under /api/: it takes the token, in a
header that no page of another site can send. What a command does is none of this module's business; it is done once the
answer is on its way, so that a command that ends the server is answered, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

__all__ = ["Commands", "command_route"]

Commands = Mapping[str, Callable[[], None]]
"""What is done, by its name. Called in a thread."""


def command_route(commands: Commands) -> Route:
    """The route of all commands: 202 with the command's name, 404 for one that there is not."""

    async def answer(request: Request) -> Response:
        name = request.path_params["name"]
        command = commands.get(name)
        if command is None:
            return JSONResponse({"error": "there is no such command here"}, status_code=404)
        return JSONResponse({"command": name}, status_code=202, background=BackgroundTask(command))

    return Route("/api/commands/{name}", answer, methods=["POST"])
