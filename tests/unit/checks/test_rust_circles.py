"""Files of a Rust crate that use each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.rust_circles import CRATES, check_circles, find_modules, iter_used, main


def write(sources: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = sources / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("use super::b::B;", "use super::a::A;"),
        ("use crate::x::b;", "use crate::x::{a::A, c};"),
        ("use super::{b, c::C};", "fn f() { super::a::g() }"),
        ("use super::{c::{self, C}, b::{B}};", "use crate::{x::{a}};"),
    ],
)
def test_two_files_that_use_each_other_are_found(tmp_path: Path, first: str, second: str) -> None:
    write(tmp_path, {"lib.rs": "pub mod x;", "x/mod.rs": "pub mod a;", "x/a.rs": first, "x/b.rs": second, "x/c.rs": ""})
    (violation,) = check_circles(tmp_path)
    assert violation.message in ("a circle: x/a -> x/b -> x/a", "a circle: x/b -> x/a -> x/b")


def test_a_folder_that_uses_its_own_file_is_in_a_circle_if_that_uses_it(tmp_path: Path) -> None:
    write(tmp_path, {"x/mod.rs": "pub mod a; use self::a::A;", "x/a.rs": "use super::Engine;"})
    assert len(list(check_circles(tmp_path))) == 1
    write(tmp_path, {"x/mod.rs": "pub mod a;"})
    assert list(check_circles(tmp_path)) == []


def test_comments_and_tests_use_what_they_like(tmp_path: Path) -> None:
    tests = "#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n"
    write(tmp_path, {"a.rs": f"// crate::b\n{tests}", "b.rs": "use crate::a::A;"})
    assert list(check_circles(tmp_path)) == []


def test_a_name_belongs_to_the_deepest_file(tmp_path: Path) -> None:
    write(tmp_path, {"x/mod.rs": "", "x/a.rs": "", "y.rs": "use crate::x::a::A; use crate::x::Engine;"})
    modules = find_modules(tmp_path)
    assert set(iter_used(modules, ("y",))) == {("x",), ("x", "a")}


def test_this_repository_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert " and ".join(CRATES) in capsys.readouterr().out


def test_the_processors_name_is_another_module(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "arch/x86_64/emit.rs": "use crate::plan::Plan;",
            "plan.rs": "use crate::cpu::emit::Emitter;",
        },
    )
    assert len(list(check_circles(tmp_path))) == 1
