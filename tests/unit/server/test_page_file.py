"""The page as a file: what is packed is what the server answers, in the room there is, and no name gets out of it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import UsageError, ViewerError
from clew.server.answer_pack import AnswerPack, make_key
from clew.server.app import make_app
from clew.server.page_file import PageExporter
from clew.server.recorded_answers import RecordedAnswers
from clew.server.served_trace import ServedTrace
from clew.server.taken_calls import take_calls
from clew.store.trace import Trace
from tests.unit.server.asking import LOOPBACK, TOKEN, ask_well
from tests.web.made_up_trace import write_made_up_trace
from tests.web.traces import HOSTILE_NAMES, HOSTILE_TITLE

if TYPE_CHECKING:
    from collections.abc import Mapping

INDEX = """<!doctype html>
<html>
  <head>
    <meta charset="utf-8" />
    <link rel="icon" href="./icon.svg" type="image/svg+xml" />
    <script type="module" crossorigin src="./assets/index-x.js"></script>
    <link rel="stylesheet" crossorigin href="./assets/index-y.css">
  </head>
  <body>
    <div id="app"></div>
  </body>
</html>
"""
SCRIPT = 'console.log("</script><script>alert(1)</script>", "<!--");\n'


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A page as it is built, whose script has in it what would end it."""
    folder = tmp_path / "page"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(INDEX)
    (folder / "icon.svg").write_text("<svg/>")
    (folder / "assets/index-x.js").write_text(SCRIPT)
    (folder / "assets/index-y.css").write_text("body { color: red }")
    (folder / "assets/layout.worker-z.js").write_text("postMessage(1)")
    return folder


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("hostile") / "hostile.clew"
    write_made_up_trace(directory, 300, n_threads=2, names=HOSTILE_NAMES, title=HOSTILE_TITLE)
    return directory


def inflate(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text), -zlib.MAX_WBITS)


def unpack(chunks: list[str], index: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the index tells, and all answers by their keys."""
    about = json.loads(inflate(index))
    answers: dict[str, Any] = {}
    for chunk, text in zip(about["chunks"], chunks, strict=True):
        content = inflate(text)
        found = {chunk["keys"][0]: content} if chunk["kind"] == "arrays" else json.loads(content)
        assert list(found) == chunk["keys"]
        answers |= found
    return about, answers


ANSWERS_OF_ANY_KIND = st.dictionaries(
    st.text(), st.binary() | st.dictionaries(st.text(), st.text() | st.integers() | st.none())
)


@pytest.mark.long
@given(st.lists(ANSWERS_OF_ANY_KIND), st.integers(0, 3000))
def test_groups_are_there_as_a_whole_or_not_at_all(
    groups: list[Mapping[str, bytes | dict[str, Any]]], limit: int
) -> None:
    pack = AnswerPack(limit)
    wanted: dict[str, Any] = {}
    for number, group in enumerate(groups):
        named = {f"{number} {key}": answer for key, answer in group.items()}
        if pack.add(named.items()):
            wanted |= named
    about, found = unpack(pack.chunks, pack.encode_index({"more": 1}))
    assert about["more"] == 1
    assert found == wanted
    assert sum(len(chunk) for chunk in pack.chunks) <= limit


def test_keys_have_their_words_sorted() -> None:
    assert make_key("a/b", {}) == "a/b"
    assert make_key("a", {"z": 1, "b": 20}) == "a?b=20&z=1"


def test_what_is_packed_is_what_the_server_answers(hostile: Path) -> None:
    recorded = RecordedAnswers(ServedTrace(hostile, 0), 8 << 20)
    _, answers = unpack(recorded.pack.chunks, recorded.pack.encode_index(recorded.about))
    app = make_app([ServedTrace(hostile, 0)], TOKEN, LOOPBACK)
    special = {"counts": "blocks=1&owners=1", "timeline": "bins=1000", "events": "from=0&to=10000000000"}
    # Nobody asks the server for all calls at once.
    assert answers.pop("traces/0/processes/0/calls/all")["calls"] == []
    for key, answer in answers.items():
        name = key.rpartition("/")[2]
        told = ask_well(app, f"/api/{key}{'?' + special[name] if name in special else ''}")
        assert told.status == 200, key
        assert (told.content if isinstance(answer, bytes) else told.json()) == answer, key
    graph = ServedTrace(hostile, 0).graph(0)
    assert recorded.left_out == []
    assert recorded.n_functions == graph.n_functions
    for function in range(graph.n_functions):
        assert f"traces/0/processes/0/functions/{function}" in answers
    for block in range(graph.n_blocks):
        assert f"traces/0/processes/0/references?block={block}" in answers


def test_all_calls_are_packed_as_the_server_tells_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_made_up_trace(tmp_path / "calls.clew", 300, n_threads=2, n_children=1, n_calls=60)
    served = ServedTrace(tmp_path / "calls.clew", 0)
    app = make_app([served], TOKEN, LOOPBACK)
    taken = take_calls(served, 0)
    assert taken is not None
    n_calls, n_entities = len(taken["calls"]), len(taken["entities"]["rows"])
    assert n_calls == 60
    prefix = "/api/traces/0/processes/0"
    assert taken["summary"] == ask_well(app, f"{prefix}/calls/summary").json()
    assert taken["places"] == ask_well(app, f"{prefix}/calls/places").json()
    for number, call in enumerate(taken["calls"]):
        asked = ask_well(app, f"{prefix}/calls/{number}").json()
        # What is around it and within it the page finds by `parent`, and names by their numbers.
        assert [asked.pop(name) for name in ("around", "within", "n_within")] == [[], [], 0]
        for one in asked["references"]:
            told = next(row for row in taken["entities"]["rows"] if row["entity"] == one["entity"])
            assert (one.pop("name"), one.pop("kind")) == (told["name"], told["kind"])
        assert call == asked
    for own, wanted in (
        ("", taken["entities"]["rows"]),
        ("&own=1", [r for r in taken["entities"]["rows"] if r["own"]]),
    ):
        told = ask_well(app, f"{prefix}/entities?count=500{own}").json()["rows"]
        assert [{name: row[name] for name in row if name != "own"} for row in wanted] == told
    assert taken["touches"] == ask_well(app, f"{prefix}/touches").json()["rows"]
    made_by_all = next(row["entity"] for row in taken["entities"]["rows"] if row["name"] == "made-up")
    assert [made_by_all, None] in taken["makers"]
    for name, most in (("MOST_CALLS", n_calls), ("MOST_ENTITIES", n_entities)):
        with monkeypatch.context() as changed:
            changed.setattr(f"clew.server.taken_calls.{name}", most - 1)
            assert take_calls(served, 0) is None
            left_out = RecordedAnswers(served, 8 << 20).left_out
        assert any(re.fullmatch(r"calls of process \d+", what) for what in left_out)


@pytest.mark.long
def test_the_busiest_code_comes_first(hostile: Path) -> None:
    whole = RecordedAnswers(ServedTrace(hostile, 0), 8 << 20)
    size = sum(len(chunk) for chunk in whole.pack.chunks)
    # Down from all of it to too little: each step has less, and says so.
    before = whole
    steps = 0
    for limit in range(size, 0, -size // 12):
        try:
            recorded = RecordedAnswers(ServedTrace(hostile, 0), limit)
        except UsageError as error:
            assert error.message.endswith("allow more with --limit")
            break
        assert sum(len(chunk) for chunk in recorded.pack.chunks) <= limit
        # What comes later may find room again where a part in front of it has none.
        assert len(recorded.left_out) > 0 or limit == size
        assert recorded.n_functions <= before.n_functions
        before, steps = recorded, steps + 1
    else:
        pytest.fail("no limit is too low")
    assert steps > 2 and before.left_out


def test_no_name_gets_out(hostile: Path, page: Path) -> None:
    file = io.BytesIO()
    PageExporter(page=page).export(Trace(hostile), file)
    text = file.getvalue().decode()
    for name in (*HOSTILE_NAMES[1:5], HOSTILE_TITLE):
        assert name not in text
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", text, re.DOTALL)
    runs = [content for attributes, content in scripts if "octet-stream" not in attributes]
    assert len(runs) == 1
    assert runs[0].replace("<\\/", "</").replace("<\\!--", "<!--") == SCRIPT
    for attributes, content in scripts:
        assert content in runs or re.fullmatch(r"[A-Za-z0-9+/=]+", content), attributes
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    words = dict(part.split(" ", 1) for part in policy[1].split("; "))
    assert words["default-src"] == "'none'" and "connect-src" not in words and "unsafe" not in policy[1]
    assert words["script-src"] == f"'sha256-{base64.b64encode(hashlib.sha256(runs[0].encode()).digest()).decode()}'"
    assert text.index("Content-Security-Policy") < text.index("<style>")
    assert "./assets" not in text and "./icon" not in text


@pytest.mark.parametrize("missing", ["index.html", "icon.svg", "assets/index-x.js", "assets/index-y.css"])
def test_a_page_that_is_not_built_is_said(hostile: Path, page: Path, missing: str) -> None:
    (page / missing).unlink()
    with pytest.raises(ViewerError, match="make build"):
        PageExporter(page=page).export(Trace(hostile), io.BytesIO())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("index.html", "<html></html>"),
        ("index.html", INDEX.replace('<meta charset="utf-8" />', "")),
        ("index.html", INDEX.replace("</body>", "")),
        ("assets/index-y.css", "</style>"),
        ("assets/index-y.css", "a { background: url(x.png) }"),
    ],
)
def test_a_page_of_another_kind_is_refused(hostile: Path, page: Path, name: str, content: str) -> None:
    (page / name).write_text(content)
    with pytest.raises(ViewerError):
        PageExporter(page=page).export(Trace(hostile), io.BytesIO())
