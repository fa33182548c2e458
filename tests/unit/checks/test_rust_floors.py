"""Uses of modules that lie on a floor above."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.rust_floors import CRATES, PATHCODEC_FLOORS, RUNTIME_FLOORS, check_floors, iter_used_modules, main


def write(sources: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = sources / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_uses_downward_and_on_the_same_floor_are_good(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "lib.rs": "pub mod dispatch; use crate::dispatch::run;",
            "dispatch/mod.rs": "use crate::{cache::Cache, sys};",
            "signal.rs": "use crate::thread::Thread;",
            "sys/map.rs": "use super::call; use crate::protocol;",
        },
    )
    assert list(check_floors(tmp_path, RUNTIME_FLOORS)) == []


@pytest.mark.parametrize(
    "text",
    [
        "use crate::dispatch::run;",
        "\nfn f() { crate::dispatch::run() }",
        "use crate::{sys, dispatch::{run, stop}};",
        "use crate::{\n    sys::{a, b},\n    dispatch,\n};",
        "use super::super::dispatch;",
        "pub(crate) use crate :: dispatch;",
    ],
)
def test_use_upward_is_found(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"cache/slab.rs": text})
    assert [violation.message for violation in check_floors(tmp_path, RUNTIME_FLOORS)] == [
        "cache uses dispatch, which is on a floor above it"
    ]


def test_what_a_processor_has_of_a_floor_is_on_that_floor(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "lib.rs": "pub mod arch; pub use arch::cpu;",
            "arch/x86_64/decode/block.rs": "use crate::cache::Cache;\nuse crate::cpu::signal::frame;",
            "arch/x86_64/emit.rs": "use crate::cpu::{context::Registers, decode::block};",
            "decode/ranges.rs": "use crate::cpu::decode::block; use crate::cpu::instrument::order;",
            "dispatch/run.rs": "use crate::cpu::gate; use crate::cpu::dispatch::far;",
        },
    )
    assert [(Path(one.place.split(":")[0]).name, one.message) for one in check_floors(tmp_path, RUNTIME_FLOORS)] == [
        ("block.rs", "decode uses cache, which is on a floor above it"),
        ("block.rs", "decode uses signal, which is on a floor above it"),
        ("emit.rs", "arch uses decode, which is on a floor above it"),
        ("ranges.rs", "decode uses instrument, which is on a floor above it"),
    ]


def test_use_upward_is_reported_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, {"cache.rs": "use crate::{\n    sys::{a, b},\n    dispatch,\n};\n"})
    assert [violation.place for violation in check_floors(tmp_path, RUNTIME_FLOORS)] == [f"{tmp_path}/cache.rs:3"]


def test_comments_strings_and_names_within_braces_do_not_count(tmp_path: Path) -> None:
    text = '// crate::dispatch\nuse crate::sys::{dispatch as other};\nlet a = "crate::dispatch"; super::dispatch();'
    write(tmp_path, {"cache/slab.rs": text})
    assert list(check_floors(tmp_path, RUNTIME_FLOORS)) == []


def test_module_without_a_floor_is_found(tmp_path: Path) -> None:
    write(tmp_path, {"attic.rs": ""})
    assert ["on no floor" in violation.message for violation in check_floors(tmp_path, RUNTIME_FLOORS)] == [True]


def test_super_reaches_the_root_at_the_files_depth() -> None:
    assert list(iter_used_modules("use super::cache;", depth=1)) == [(1, "cache")]
    assert list(iter_used_modules("use super::cache;", depth=2)) == []


def test_each_crate_has_floors_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, {"advance.rs": "use crate::walk::Walker;", "fold.rs": "use crate::{code, walk};", "tests.rs": ""})
    assert list(check_floors(tmp_path, PATHCODEC_FLOORS)) == []
    write(tmp_path, {"code.rs": "use crate::advance::Progress;", "cache.rs": ""})
    assert len(list(check_floors(tmp_path, PATHCODEC_FLOORS))) == 2


@pytest.mark.parametrize("crate", CRATES)
def test_all_crates_of_a_tree_are_checked(tmp_path: Path, crate: str) -> None:
    assert main([str(tmp_path)]) == 0
    write(tmp_path / crate / "src", {"attic.rs": ""})
    assert main([str(tmp_path)]) == 1
