"""Every piece of unsafe Rust is argued for.

An `unsafe {` block or `unsafe impl` needs a `// SAFETY:` comment on its line, or above the statement it is in; an
`unsafe fn` or `unsafe trait` needs that or a `# Safety` section in its documentation; a method of a trait's
implementation does not, since its contract is the trait's. clippy asks the same of blocks in
the crate it compiles; this one sees every file, whatever the configuration, and functions too.

Run as `python -m checks.unsafe_code [FOLDER]...`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from checks.rust_source import RustSource, parse_rust_source
from checks.violation import Violation, report

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_SOURCES = (ROOT / "runtime/src", ROOT / "pathcodec/src")

# A function needs a name: `unsafe fn(usize)` is only a type.
_UNSAFE = re.compile(r"\bunsafe\s+(?:(?P<item>(?:extern\b\s*)?fn\s+\w+|trait\b)|(?P<block>\{|impl\b|extern\s*\{))")
_TRAIT_IMPLEMENTATION = re.compile(r"\bimpl\b.*\bfor\b", re.DOTALL)
_ARGUED = re.compile(r"//[/!]?\s*SAFETY:\s*\S|/\*\s*SAFETY:\s*\S")
_DOCUMENTED = re.compile(r"///\s*#+\s*Safety\b")


def check_unsafe_code(text: str, name: str) -> Iterator[Violation]:
    """Yield each unsafe block, function, trait or implementation of the source text that nothing argues for."""
    source = parse_rust_source(text)
    code = "\n".join(source.code)
    for match in _UNSAFE.finditer(code):
        line = code.count("\n", 0, match.start())
        if match["item"] and _TRAIT_IMPLEMENTATION.search(_enclosing_header(code, match.start())):
            continue
        comments = "\n".join(_comments_for(source, line))
        if _ARGUED.search(comments) or (match["item"] and _DOCUMENTED.search(comments)):
            continue
        what = " ".join(match.group().split())
        wanted = "a `# Safety` section or a `// SAFETY:` comment" if match["item"] else "a `// SAFETY:` comment"
        yield Violation(f"{name}:{line + 1}", f"`{what}` without {wanted}")


def _comments_for(source: RustSource, line: int) -> Iterator[str]:
    """The comments that speak of `line` (from 0): on it, and above the statement or item that it belongs to."""
    yield source.comments[line]
    at = line - 1
    # Up through the lines of the same statement, and attributes.
    while at >= 0 and (code := source.code[at].strip()):
        if code.endswith((";", "{", "}", ",")) and not code.startswith("#["):
            return
        yield source.comments[at]
        at -= 1
    while at >= 0 and (source.comments[at].strip() or source.code[at].strip().startswith("#[")):
        if source.code[at].strip() and not source.code[at].strip().startswith("#["):
            return
        yield source.comments[at]
        at -= 1


def _enclosing_header(code: str, position: int) -> str:
    """The text before the brace that `position` lies in, back to the end of what comes before it; "" at the top."""
    depth = 0
    for at in range(position - 1, -1, -1):
        if code[at] == "}":
            depth += 1
        elif code[at] == "{":
            depth -= 1
            if depth < 0:
                start = max(code.rfind(mark, 0, at) for mark in ";{}")
                return code[start + 1 : at]
    return ""


def main(arguments: list[str]) -> int:
    """Check the folders named in `arguments`, or the sources of both crates; return the exit status."""
    folders = [Path(argument) for argument in arguments] or list(DEFAULT_SOURCES)
    paths = sorted(path for folder in folders for path in folder.rglob("*.rs"))
    found = [
        violation for path in paths for violation in check_unsafe_code(path.read_text(encoding="utf-8"), str(path))
    ]
    return report(found, f"unsafe code ({len(paths)} files)")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
