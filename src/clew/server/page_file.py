"""The page as one file, with answers in it: opens from a disk, and asks nobody.

Runs in the controller. The built page's script, style and icon are put into its document, the workers' scripts and all
answers as letters that mean nothing to HTML (base64): no name of the trace's stands in it as it is. The document's own
policy allows the one script and the one style, by their hashes, and no connection at all.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from clew.errors import ViewerError
from clew.server.app import PAGE_DIRECTORY
from clew.server.recorded_answers import RecordedAnswers
from clew.server.served_trace import ServedTrace
from clew.store.trace import Trace

__all__ = ["DEFAULT_LIMIT_MB", "PageExporter"]

DEFAULT_LIMIT_MB: Final = 32

_SCRIPT: Final = re.compile(r'<script type="module"[^>]*\bsrc="\./([^"]+)"[^>]*></script>')
_STYLE: Final = re.compile(r'<link rel="stylesheet"[^>]*\bhref="\./([^"]+)"[^>]*>')
_ICON: Final = re.compile(r'<link rel="icon"[^>]*\bhref="\./([^"]+)"[^>]*>')
_WORKER: Final = re.compile(r"^(\w+)\.worker-[\w-]+\.js$")
_DATA_TYPE: Final = "application/octet-stream"
"""Of a script element that browsers do not run."""


class PageExporter:
    """Writes a trace as one HTML file, of which the trace's part is at most `limit_mb` MB (2^20 bytes)."""

    name: Final = "html"
    suffix: Final = ".html"
    items: Final = "functions"
    part: Final = "the code of "

    def __init__(self, limit_mb: int = DEFAULT_LIMIT_MB, page: Path = PAGE_DIRECTORY) -> None:
        self._limit_bytes = limit_mb << 20
        self._page = page
        self.notes: Sequence[str] = ()

    def export(self, trace: Trace, file: IO[bytes]) -> int:
        """Write it; of how many functions the code is in it. `notes` say afterwards what is not.

        Raises UsageError where the limit leaves no room for a graph, ViewerError where the page was not built.
        """
        document = _Document(self._page)
        answers = RecordedAnswers(ServedTrace(trace.directory, 0), self._limit_bytes)
        self.notes = [f"not in the file: {what}" for what in answers.left_out]
        head, tail = document.split()
        file.write(head.encode())
        for number, chunk in enumerate(answers.pack.chunks):
            file.write(f'<script type="{_DATA_TYPE}" id="clew-chunk-{number}">{chunk}</script>\n'.encode())
        index = answers.pack.encode_index(answers.about)
        file.write(f'<script type="{_DATA_TYPE}" id="clew-index">{index}</script>\n'.encode())
        file.write(tail.encode())
        return answers.n_functions


class _Document:
    """The built page in `directory` with all its parts in it. Raises ViewerError where it is not as it is built."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        text = self._read("index.html")
        script = self._read(self._find(_SCRIPT, text))
        # What would end the element, and what would begin a comment in it: in scripts both are the same so.
        script = re.sub(r"</(?=script)", r"<\\/", script, flags=re.IGNORECASE).replace("<!--", r"<\!--")
        style = self._read(self._find(_STYLE, text))
        if "</style" in style.lower() or "url(" in style:
            raise ViewerError(directory, "its style can't be put into a file")
        icon = _encode(self._read(self._find(_ICON, text)))
        policy = "; ".join(
            (
                "default-src 'none'",
                f"script-src 'sha256-{_hash(script)}'",
                f"style-src 'sha256-{_hash(style)}'",
                "img-src data: blob:",
                "media-src blob:",
                "worker-src blob:",
                "base-uri 'none'",
                "form-action 'none'",
            )
        )
        text = _STYLE.sub(lambda _: f"<style>{style}</style>", text)
        text = _ICON.sub(lambda _: f'<link rel="icon" href="data:image/svg+xml;base64,{icon}">', text)
        text = _SCRIPT.sub("", text)
        meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}" />'
        text = text.replace('<meta charset="utf-8" />', f'<meta charset="utf-8" />\n    {meta}', 1)
        self._body, _, rest = text.partition("</body>")
        if not rest or meta not in text:
            raise ViewerError(directory, "its document is not as the build leaves it; build it again")
        workers = [
            (found[1], path.name)
            for path in sorted((directory / "assets").iterdir())
            if (found := _WORKER.match(path.name)) is not None
        ]
        for name, file_name in workers:
            content = _encode(self._read(f"assets/{file_name}"))
            self._body += f'<script type="{_DATA_TYPE}" id="clew-worker-{name}">{content}</script>\n'
        # Behind all that it reads.
        self._tail = f'<script type="module">{script}</script>\n</body>{rest}'

    def split(self) -> tuple[str, str]:
        """What comes in front of the answers, and what comes behind them."""
        return self._body, self._tail

    def _read(self, name: str) -> str:
        try:
            return (self._directory / name).read_text(encoding="utf-8")
        except OSError as error:
            reason = "the viewer's page is not built; `make build` in the repository does it"
            raise ViewerError(self._directory, reason) from error

    def _find(self, pattern: re.Pattern[str], text: str) -> str:
        found = pattern.findall(text)
        if len(found) != 1:
            raise ViewerError(self._directory, "its document is not as the build leaves it; build it again")
        name: str = found[0]
        return name


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
