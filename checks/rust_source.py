"""Rust source text prepared for the checks: split into code and comments, line by line. Knows no rule."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<line_comment>//[^\n]*)
  | (?P<block_comment>/\*)
  | (?P<raw_string>\b(?:b|c)?r(?P<hashes>\#*)".*?"(?P=hashes))
  | (?P<string>\b[bc]?"(?:\\.|[^"\\])*"|"(?:\\.|[^"\\])*")
  | (?P<char>b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[0-9a-fA-F_]+\}|.)|[^'\\\n])')
    """,
    re.VERBOSE | re.DOTALL,
)
_BLOCK_EDGE = re.compile(r"/\*|\*/")


@dataclass(frozen=True)
class RustSource:
    """A file's lines twice: `code` with comments and literals blanked, `comments` with everything else blanked.

    Both have as many lines as the file, so line numbers agree (index 0 is line 1).
    """

    code: list[str]
    comments: list[str]


def parse_rust_source(text: str) -> RustSource:
    """Tell code from comments. An unclosed comment reaches to the end of the file, as it does for the compiler."""
    code: list[str] = []
    comments: list[str] = []
    at = 0
    while (match := _TOKEN.search(text, at)) is not None:
        code.append(text[at : match.start()])
        comments.append(_blank(text[at : match.start()]))
        end = _block_comment_end(text, match.start()) if match["block_comment"] else match.end()
        token = text[match.start() : end]
        is_comment = token.startswith(("//", "/*"))
        code.append(_blank(token))
        comments.append(token if is_comment else _blank(token))
        at = end
    code.append(text[at:])
    comments.append(_blank(text[at:]))
    return RustSource("".join(code).split("\n"), "".join(comments).split("\n"))


def _block_comment_end(text: str, start: int) -> int:
    """Block comments nest in Rust."""
    depth = 0
    for edge in _BLOCK_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
