"""Options of `clew api` that name headers, for functions that nothing else describes.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from clew.api.descriptions import Descriptions
    from clew.api.headers import Headers

__all__ = ["header_options", "read_headers"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_OPTIONS: Final = (
    click.option(
        "--header",
        "headers",
        multiple=True,
        metavar="FILE.h",
        help="With --function: a header that declares functions which nothing else describes; may be given again.",
    ),
    click.option(
        "--header-folder",
        "header_folders",
        multiple=True,
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Where else headers are; may be given again.",
    ),
)


def header_options(function: _Function) -> _Function:
    """Give a command the options that `read_headers` reads."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def read_headers(
    names: tuple[str, ...], folders: tuple[Path, ...], descriptions: Descriptions, *, has_functions: bool
) -> Headers | None:
    """What headers say; None: nobody named any. Raises UsageError, click.UsageError."""
    if not names:
        return None
    if not has_functions:
        raise click.UsageError("--header is for --function")
    from clew.api.headers import Headers

    return Headers(names, folders, descriptions)
