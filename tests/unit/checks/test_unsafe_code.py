"""Unsafe Rust with and without the argument for it."""

from __future__ import annotations

import pytest

from checks.unsafe_code import check_unsafe_code

ARGUED = [
    "// SAFETY: it is ours.\nunsafe { f() }",
    "unsafe { f() } // SAFETY: it is ours.",
    "// SAFETY: it is ours,\n// and nobody else's.\nlet x = g(\n    unsafe { f() },\n);",
    "let x = // SAFETY: it is ours.\n    unsafe { f() };",
    "// SAFETY: it is ours.\nunsafe impl Sync for T {}",
    "/// Does it.\n///\n/// # Safety\n/// `a` is mapped.\n#[inline]\npub unsafe fn f(a: usize) {}",
    '/// # Safety\n/// Called once.\nunsafe extern "C" fn f() {}',
    "/// # Safety\n/// Good pointers only.\npub unsafe trait T {}",
    "// SAFETY: of the trait.\nunsafe impl Alloc for T {\n    unsafe fn alloc(&self) {}\n}",
    "let f: unsafe fn(usize) = g;",
    '#[unsafe(no_mangle)]\nextern "C" fn f() {}',
    '// unsafe { f() }\nlet a = "unsafe { f() }";',
    "#![deny(unsafe_op_in_unsafe_fn)]",
]
NOT_ARGUED = [
    "unsafe { f() }",
    "// It is ours.\nunsafe { f() }",
    "// SAFETY:\nunsafe { f() }",
    "// SAFETY: of another.\nlet a = 1;\nunsafe { f() }",
    "// SAFETY: of the first.\nunsafe { f() };\nunsafe { g() };",
    "// SAFETY: too far away.\n\nunsafe { f() }",
    "// SAFETY: of the function.\nfn f() {\n    unsafe { g() }\n}",
    "unsafe impl Sync for T {}",
    "/// Does it.\npub unsafe fn f(a: usize) {}",
    "/// # Safety\n/// A block is no item.\nunsafe { f() }",
    "impl T {\n    unsafe fn f(&self) {}\n}",
    "unsafe\n{ f() }",
]


@pytest.mark.parametrize("text", ARGUED)
def test_argued_for(text: str) -> None:
    assert list(check_unsafe_code(text, "x.rs")) == []


@pytest.mark.parametrize("text", NOT_ARGUED)
def test_not_argued_for(text: str) -> None:
    assert len(list(check_unsafe_code(text, "x.rs"))) == 1


def test_the_line_is_named() -> None:
    (found,) = check_unsafe_code("fn f() {\n\n    unsafe { g() }\n}", "x.rs")
    assert str(found) == "x.rs:3: `unsafe {` without a `// SAFETY:` comment"
