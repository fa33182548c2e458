"""Code and comments of Rust files are told apart."""

from __future__ import annotations

from checks.rust_source import parse_rust_source


def code_of(text: str) -> str:
    return "\n".join(" ".join(line.split()) for line in parse_rust_source(text).code)


def test_comments_and_literals_leave_the_code() -> None:
    assert code_of('let a = "x // y"; // crate::z') == "let a = ;"
    assert code_of(r'let a = "\" unsafe {"; b()') == "let a = ; b()"
    assert code_of('let a = r#"x " unsafe { "#; b()') == "let a = ; b()"
    assert code_of("let a = '\"'; b('\\''); c('\\u{7f}')") == "let a = ; b( ); c( )"


def test_block_comments_nest() -> None:
    assert code_of("a /* b /* c */ d */ e") == "a e"
    assert code_of("a /* never closed") == "a"


def test_lifetimes_are_code() -> None:
    assert code_of("fn f<'a>(x: &'a str) -> &'a str { x }") == "fn f<'a>(x: &'a str) -> &'a str { x }"


def test_line_numbers_are_kept() -> None:
    source = parse_rust_source('a\n/* b\n c */ d\n"e\nf" g // h\n')
    assert len(source.code) == len(source.comments) == 6
    assert source.code[2].split() == ["d"]
    assert source.comments[4].split() == ["//", "h"]
