"""What is imported late is there when it is asked for."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
assert "typing" not in sys.modules and "pathlib" not in sys.modules, "pytest is not wanted here"
from clew.late import prepare_library
prepare_library()
import clew.recording.session.session, pathlib, urllib.parse
from clew.address import Pid
from clew.process.ptrace import TaskId
from typing import Any, Final, TYPE_CHECKING
assert not TYPE_CHECKING and Pid(5) == 5
assert "ipaddress" not in sys.modules, "a recording has no use for it"
assert isinstance(sys.modules["typing"], clew.late.Late), "typing was imported"

assert pathlib.Path("/a b").as_uri() == "file:///a%20b"
assert urllib.parse.quote("a b") == "a%20b" and urllib.parse.urlparse("x://y").netloc == "y"
from typing import NamedTuple, get_type_hints
import typing
assert not isinstance(typing, clew.late.Late) and typing.Optional[int] is not None
class Pair(NamedTuple):
    first: int
assert Pair(1).first == 1 and get_type_hints(Pair) == {"first": int}
prepare_library()
assert not isinstance(sys.modules["typing"], clew.late.Late)
try:
    from urllib.parse import no_such_name
    raise SystemExit("a name that there is not")
except ImportError:
    pass
"""


def test_a_recording_does_without_what_it_names_for_annotations() -> None:
    subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}\n{PROGRAM}"], check=True)
