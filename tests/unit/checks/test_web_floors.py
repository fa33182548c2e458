"""The floors of the page: what is found in made-up sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.web_floors import ROOT, SOURCES, check_floors


def write(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_ts", ".ts").replace("_TEST", ".test")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("where", "text", "said"),
    [
        ("model__a_ts", 'import { b } from "../views/b.ts";\n', "model uses views"),
        ("base__a_ts", 'export * from "../protocol/b.ts";\n', "base uses protocol"),
        ("model__a_ts", 'import {\n  type A,\n  b,\n} from "../views/b.ts";\n', "model uses views"),
        ("api__a_ts", 'const found = await import("../model/b.ts");\n', "api uses model"),
        ("model__a_ts", 'new Worker(new URL("../views/b.worker.ts", import.meta.url));\n', "model uses views"),
        ("model__a_ts", 'import { render } from "preact";\n', "model may not import the package preact"),
        ("views__a_ts", 'import d3 from "d3";\n', "views may not import the package d3"),
        ("views__a_ts", 'import { a } from "../../../secret.ts";\n', "is outside of"),
        ("elsewhere__a_ts", "", "folder elsewhere is on no floor"),
    ],
)
def test_found(tmp_path: Path, where: str, text: str, said: str) -> None:
    (violation,) = check_floors(write(tmp_path, **{where: text}))
    assert said in str(violation)


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("views__deep__a_ts", 'import { b } from "../../model/b.ts";\nimport { signal } from "@preact/signals";\n'),
        ("model__a_ts", 'import { b } from "./deep/b.ts";\nimport type { C } from "../api/c.ts";\n'),
        ("base__a_TEST_ts", 'import { test } from "vitest";\n'),
        ("api__a_ts", 'const word = found.get("from", "f64");\ntype Name = "from" | "to";\n'),
        ("main_ts", 'import { App } from "./views/app.tsx";\nimport { render } from "preact";\n'),
    ],
)
def test_let_be(tmp_path: Path, where: str, text: str) -> None:
    assert list(check_floors(write(tmp_path, **{where: text}))) == []


def test_the_page_keeps_to_its_floors() -> None:
    assert list(check_floors(ROOT / SOURCES)) == []
