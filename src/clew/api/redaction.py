"""What of calls is not to be told: arguments that are secrets, data, and what fits patterns.

Runs in the controller. Pure. Arguments that are hidden are not captured at all, so they do not leave the program;
what fits a pattern is cut out of each string and buffer when that is written, whatever it is written to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from socket import AF_INET, AF_INET6
from typing import Final, TypeVar

from clew.api.description import Case, Function, Member, Parameter, Struct, Variants
from clew.api.values import REDACTED
from clew.dataclass import dataclass, replace

__all__ = ["Redaction", "parse_pattern"]

_One = TypeVar("_One", Parameter, Member)

_FAMILY_BYTES: Final = 2

_DATA: Final = ("buffer", "string", "wide_string")
"""Raw types of what a program's data is in. Paths and addresses of sockets say what a call is about."""


def parse_pattern(text: str) -> re.Pattern[bytes]:
    """A regular expression over bytes. Raises re.error."""
    return re.compile(text.encode(errors="surrogateescape"), re.DOTALL)


@dataclass(frozen=True)
class Redaction:
    """What is hidden: matches of `patterns`; arguments and members whose name, `NAME` or `FUNCTION:NAME`, fits one of
    `names`; without `has_data` what is in buffers and strings; and what descriptions say is secret, unless
    `shows_secrets`."""

    patterns: tuple[re.Pattern[bytes], ...] = ()
    names: tuple[str, ...] = ()
    has_data: bool = True
    shows_secrets: bool = False

    @property
    def changes_descriptions(self) -> bool:
        """Whether anything is hidden otherwise than descriptions say."""
        return bool(self.names) or not self.has_data or self.shows_secrets

    def data(self, data: bytes) -> bytes:
        """Bytes without what fits a pattern."""
        for pattern in self.patterns:
            # What fits nothing at all is nothing to hide.
            data = pattern.sub(lambda match: REDACTED.encode() if match[0] else b"", data)
        return data

    def socket_address(self, data: bytes) -> bytes:
        """The address of a socket: those of the internet are numbers, others may have text in them."""
        family = int.from_bytes(data[:_FAMILY_BYTES], "little")
        is_text = family not in (AF_INET, AF_INET6)
        return data[:_FAMILY_BYTES] + self.data(data[_FAMILY_BYTES:]) if is_text else data

    def text(self, text: str) -> str:
        """Text, of which a file's name may be no UTF-8, without what fits a pattern."""
        if not self.patterns:
            return text
        return self.data(text.encode(errors="surrogateescape")).decode(errors="surrogateescape")

    def command(self, words: Sequence[str]) -> list[str]:
        """The command line of a process; without data of a program only its name."""
        return [self.text(word) for word in (words if self.has_data else words[:1])]

    def function(self, function: Function) -> Function:
        """A function that hides what is to be hidden."""
        if not self.changes_descriptions or function.parameters is None:
            return function
        return replace(
            function,
            parameters=self._parameters(function.name, function.parameters),
            variants=self._variants(function.name, function.variants),
        )

    def struct(self, struct: Struct) -> Struct:
        """A structure that hides what is to be hidden."""
        members = tuple(self._hide(struct.name, member) for member in struct.members)
        return struct if members == struct.members else replace(struct, members=members)

    def _parameters(self, function: str, parameters: Iterable[Parameter]) -> tuple[Parameter, ...]:
        return tuple(self._hide(function, parameter) for parameter in parameters)

    def _variants(self, function: str, variants: Variants | None) -> Variants | None:
        if variants is None:
            return None
        return replace(variants, cases=tuple(self._case(function, case) for case in variants.cases))

    def _case(self, function: str, case: Case) -> Case:
        parameters = self._parameters(function, case.parameters)
        return replace(case, parameters=parameters, variants=self._variants(function, case.variants))

    def _hide(self, owner: str, one: _One) -> _One:
        hidden = one.hidden
        if hidden == "secret" and self.shows_secrets:
            hidden = None
        if any(fnmatchcase(one.name, name) or fnmatchcase(f"{owner}:{one.name}", name) for name in self.names):
            hidden = "secret"
        if hidden is None and not self.has_data and one.raw_type in _DATA:
            hidden = "data"
        return one if hidden == one.hidden else replace(one, hidden=hidden)
