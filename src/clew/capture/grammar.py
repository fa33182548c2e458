"""Reads an expression: C's, with the registers and words that captures have.

Runs in the controller.

    expression  || && | ^ & == != < <= > >= << >> + - * / %, then - + ~ ! * & and (TYPE), then . -> [], as in C
    primary     number, "text", name, name(expression, ...), N(%REGISTER), (expression)
    number      10, 0x1f, 017, 1.5
    name        REGISTER, $REGISTER, arg1, retval, tid, errno, environ, libc.so.6!environ, var:NAME, var:$retval,
                tls:NAME, tls:IMAGE!NAME
    TYPE        int, unsigned long, u32, struct NAME, enum NAME, or any other name in front of a star
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import Final

from clew.capture.syntax import (
    Binary,
    Call,
    Index,
    Load,
    Member,
    Name,
    Node,
    Number,
    Text,
    ThreadLocal,
    TypeName,
    Unary,
    Variable,
)
from clew.errors import CaptureError

__all__ = ["MAX_CHARACTERS", "parse"]

MAX_CHARACTERS: Final = 4096
MAX_DEPTH: Final = 64
MAX_OPERATORS: Final = 256
"""Between two operands."""

_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<float>\d+\.\d+(?:[eE][+-]?\d+)?)(?![\w.])
      | (?P<number>0[xX][0-9a-fA-F]+|\d+)(?:[uU]?[lL]{0,2}|[lL]{1,2}[uU])(?![\w.])
      | (?P<text>"(?:[^"\\]|\\.)*")
      | (?P<register>\$[a-z][a-z0-9]*|(?<=\()%[a-z][a-z0-9]*)
      | (?P<variable>var:(?:\$retval|[A-Za-z_]\w*(?:::~?[A-Za-z_]\w*)*))
      | (?P<thread_local>tls:(?:[A-Za-z_.][\w.+-]*!)?[A-Za-z_]\w*)
      | (?P<name>[A-Za-z_.][\w.+-]*![A-Za-z_][\w:$@.]*|[A-Za-z_][\w:]*)
      | (?P<operator>\|\||&&|==|!=|<=|>=|<<|>>|->|[][.]|[-+*/%&|^~!<>(),])
    )""",
    re.VERBOSE,
)
_OPERATORS: Final = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
"""Operators between two operands, from those that bind least."""
_PRECEDENCE: Final = {operator: level for level, operators in enumerate(_OPERATORS) for operator in operators}

_TYPE_WORDS: Final = frozenset(
    ["char", "short", "int", "long", "signed", "unsigned", "float", "double", "void", "pointer"]
    + [f"{sign}{bits}" for sign in ("u", "i", "s", "int", "uint") for bits in (8, 16, 32, 64)]
    + [f"{sign}{bits}_t" for sign in ("int", "uint") for bits in (8, 16, 32, 64)]
    + ["size_t", "ssize_t", "uintptr_t", "intptr_t", "bool", "_Bool", "f32", "f64"]
)
_RECORD_WORDS: Final = frozenset(["struct", "union", "enum", "class"])
_QUALIFIERS: Final = frozenset(["const", "volatile"])
_ALL_WORDS: Final = _TYPE_WORDS | _RECORD_WORDS | _QUALIFIERS


@lru_cache(maxsize=1 << 10)
def parse(text: str) -> Node:
    """The tree of an expression, which nobody changes. Raises CaptureError."""
    if len(text) > MAX_CHARACTERS:
        raise CaptureError(f"an expression of {len(text)} characters: at most {MAX_CHARACTERS} are read")
    parser = _Parser(text)
    node = parser.expression()
    parser.end()
    return node


_Operator = tuple[str, int, TypeName | None]
"""One in front of an operand, its place, and of a cast to what."""


def _wrap(operators: list[_Operator], node: Node) -> Node:
    for operator, at, cast in reversed(operators):
        node = Unary(operator, node, at, cast)
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._at = 0
        self._depth = 0
        self._n_operators = 0

    def _split(self) -> list[tuple[str, str, int]]:
        """Kind, text and place of each token."""
        tokens = []
        at = 0
        end = len(self._text.rstrip())
        while at < end:
            match = _TOKEN.match(self._text, at)
            if match is None:
                rest = self._text[at:]
                raise self._error("this is no part of an expression", at + len(rest) - len(rest.lstrip()))
            kind = str(match.lastgroup)
            tokens.append((kind, match[kind], match.start(kind)))
            at = match.end()
        return tokens

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise self._error("the expression should have ended here", self._place())

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error("this is nested too deeply", self._place())
        node = self._operation(0)
        self._depth -= 1
        return node

    def _operation(self, least: int) -> Node:
        """Operands, and operators between them that bind at least so much."""
        node = self._unary()
        while (level := _PRECEDENCE.get(self._peek("operator"), -1)) >= least:
            _, operator, at = self._take()
            self._n_operators += 1
            if self._n_operators > MAX_OPERATORS:
                raise self._error(f"there are more than {MAX_OPERATORS} operators", at)
            node = Binary(operator, node, self._operation(level + 1), at)
        return node

    def _unary(self) -> Node:
        operators: list[_Operator] = []
        while True:
            if self._peek("operator") in ("-", "+", "~", "!", "*", "&"):
                _, operator, at = self._take()
                if operator == "-" and self._is_displaced():
                    _, text, _ = self._take()
                    node = self._displaced(-self._integer(text, at), at)
                    return _wrap(operators, node)
                operators.append((operator, at, None))
            elif self._peek("operator") == "(" and self._begins_type(self._at + 1):
                at = self._place()
                self._take()
                cast = self._type()
                self._expect(")")
                operators.append(("cast", at, cast))
            else:
                break
            if len(operators) > MAX_DEPTH:
                raise self._error("this is nested too deeply", self._place())
        return _wrap(operators, self._postfix(self._primary()))

    def _postfix(self, node: Node) -> Node:
        while self._peek("operator") in (".", "->", "["):
            _, operator, at = self._take()
            self._n_operators += 1
            if self._n_operators > MAX_OPERATORS:
                raise self._error(f"there are more than {MAX_OPERATORS} operators", at)
            if operator == "[":
                node = Index(node, self.expression(), at)
                self._expect("]")
            else:
                if self._kind(0) != "name":
                    raise self._error("the name of a member is missing", self._place())
                _, name, _ = self._take()
                node = Member(node, name, operator == "->", at)
        return node

    def _is_displaced(self) -> bool:
        """Whether what comes is `N(%register)`."""
        return self._kind(0) == "number" and self._kind(1) == "operator" and self._kind(2) == "register"

    def _primary(self) -> Node:
        if self._at >= len(self._tokens):
            raise self._error("something is missing at the end", len(self._text))
        kind, text, at = self._take()
        match kind:
            case "number":
                value = self._integer(text, at)
                if self._peek("operator") == "(" and self._kind(1) == "register":
                    return self._displaced(value, at)
                return Number(value, at)
            case "float":
                return Number(float(text), at)
            case "text":
                return Text(self._unquote(text, at), at)
            case "register":
                return Name(text[1:], True, at)
            case "variable":
                return Variable(text.removeprefix("var:"), at)
            case "thread_local":
                image, _, name = text.removeprefix("tls:").rpartition("!")
                return ThreadLocal(image, name, at)
            case "name" if text == "errno":
                return ThreadLocal("", "errno", at)
            case "name":
                return self._call(text, at) if self._peek("operator") == "(" else Name(text, False, at)
        if text == "(":
            node = self.expression()
            self._expect(")")
            return node
        raise self._error(f"{text!r} can't stand here", at)

    def _integer(self, text: str, at: int) -> int:
        is_octal = text[0] == "0" and text.isdecimal()
        if is_octal and not set(text) <= set("01234567"):
            raise self._error(f"{text}: not an octal number", at)
        value = int(text, 8 if is_octal else 0)
        if value >> 64:
            raise self._error(f"{text}: larger than 64 bits", at)
        return value

    def _unquote(self, text: str, at: int) -> bytes:
        try:
            value = ast.literal_eval("b" + text)
        except (ValueError, SyntaxError) as error:
            raise self._error(f"{text}: not a string of ASCII", at) from error
        assert isinstance(value, bytes)
        return value

    def _displaced(self, distance: int, at: int) -> Node:
        self._take()
        _, register, _ = self._take()
        self._expect(")")
        return Load(register[1:], distance, at)

    def _call(self, function: str, at: int) -> Node:
        self._take()
        arguments = []
        if self._peek("operator") != ")":
            arguments.append(self.expression())
            while self._peek("operator") == ",":
                self._take()
                arguments.append(self.expression())
        self._expect(")")
        return Call(function, tuple(arguments), at)

    def _begins_type(self, index: int) -> bool:
        """Whether a type's name stands at a token: a word of C's, or a name with nothing but stars behind it."""
        if self._is_type_word(index):
            return True
        behind = index + 1
        if not self._is_name(index) or self._tokens[index][1] in ("errno",):
            return False
        while behind < len(self._tokens) and self._tokens[behind][:2] == ("operator", "*"):
            behind += 1
        is_closed = behind < len(self._tokens) and self._tokens[behind][:2] == ("operator", ")")
        return is_closed and behind > index + 1

    def _is_name(self, index: int) -> bool:
        return index < len(self._tokens) and self._tokens[index][0] == "name"

    def _is_type_word(self, index: int) -> bool:
        return self._is_name(index) and self._tokens[index][1] in _ALL_WORDS

    def _type(self) -> TypeName:
        words = []
        while self._is_type_word(self._at):
            word = self._take()[1]
            if word not in _QUALIFIERS:
                words.append(word)
            if word in _RECORD_WORDS:
                break
        # A structure's name, or one that is known from debugging information only.
        if (not words or words[-1] in _RECORD_WORDS) and self._is_name(self._at):
            words.append(self._take()[1])
        n_pointers = 0
        while self._peek("operator") == "*" or (self._is_name(self._at) and self._peek("name") in _QUALIFIERS):
            n_pointers += int(self._take()[1] == "*")
        return TypeName(" ".join(words), n_pointers)

    def _kind(self, ahead: int) -> str:
        index = self._at + ahead
        return self._tokens[index][0] if index < len(self._tokens) else ""

    def _peek(self, kind: str) -> str:
        return self._tokens[self._at][1] if self._kind(0) == kind else ""

    def _take(self) -> tuple[str, str, int]:
        self._at += 1
        return self._tokens[self._at - 1]

    def _place(self) -> int:
        return self._tokens[self._at][2] if self._at < len(self._tokens) else len(self._text)

    def _expect(self, operator: str) -> None:
        if self._peek("operator") != operator:
            raise self._error(f"{operator!r} is missing", self._place())
        self._take()

    def _error(self, why: str, at: int) -> CaptureError:
        return CaptureError(f"{self._text!r}, at character {at + 1}: {why}")
