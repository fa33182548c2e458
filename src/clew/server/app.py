"""The server as an application: its routes, who may ask, and how errors are told.

Runs in the controller. Answers are made in threads, since they read files and count.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

from clew.errors import ClewError, UsageError
from clew.server.answers import ANSWERS, Answer
from clew.server.commands import Commands, command_route
from clew.server.container import MEDIA_TYPE
from clew.server.live_control import LiveControl, refuse_control
from clew.server.live_socket import LiveBroadcast
from clew.server.query import Query
from clew.server.security import Guard, HostNames
from clew.server.served_trace import ServedTrace
from clew.server.summary import list_traces
from clew.server.table_files import TableFile

__all__ = ["PAGE_DIRECTORY", "make_app"]

PAGE_DIRECTORY: Final = Path(__file__).resolve().parent.parent / "_page"


class _Index(Convertor[int]):
    """A number in a path. Starlette's own fails at one of thousands of digits, which Python does not read."""

    regex = "[0-9]{1,20}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


register_url_convertor("index", _Index())


def make_app(
    served: Sequence[ServedTrace],
    token: str,
    hosts: HostNames,
    page: Path = PAGE_DIRECTORY,
    live: LiveBroadcast | None = None,
    commands: Commands | None = None,
    control: LiveControl | None = None,
) -> Starlette:
    """The application that serves `served`, and does `commands`, to requests for `hosts` that know `token`; and the
    recording `live`, which `control` speaks to.
    """

    async def answer(make: Answer, request: Request) -> Response:
        def work() -> Response:
            result = make(Query(request.path_params, request.query_params, served))
            if isinstance(result, TableFile):
                return Response(result.content, media_type=result.media_type)
            if isinstance(result, bytes):
                return Response(result, media_type=MEDIA_TYPE)
            return JSONResponse(result)

        return await run_in_threadpool(work)

    async def answer_traces(_request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(list_traces, served))

    routes = [
        Route("/api/traces", answer_traces),
        *(Route(f"/api/traces/{{trace:index}}{path}", partial(answer, make)) for path, make in ANSWERS.items()),
        *([] if live is None else [WebSocketRoute("/api/live", live.serve)]),
        command_route(commands or {}),
        Route("/api/live/control", refuse_control if control is None else control.answer, methods=["GET", "POST"]),
        # Behind all others: the page, and for whatever else there is not a 404.
        Mount("/", StaticFiles(directory=page, html=True, check_dir=False)),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, token=token, hosts=hosts)],
        exception_handlers={ClewError: _tell_error, HTTPException: _tell_refusal, Exception: _tell_failure},
    )


async def _tell_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ClewError)
    return JSONResponse({"error": error.message}, status_code=400 if isinstance(error, UsageError) else 422)


async def _tell_refusal(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, status_code=error.status_code, headers=error.headers)


async def _tell_failure(_request: Request, error: Exception) -> Response:
    return JSONResponse({"error": f"internal error: {type(error).__name__}, please report it"}, status_code=500)
