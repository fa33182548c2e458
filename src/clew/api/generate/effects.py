"""Effects of system calls, as description files have them, out of lines of words.

Runs on a developer's machine. `sources/effects.json` has, by patterns of calls' names, lines as `LinkReference result
filename role=opened cloexec=flags:O_CLOEXEC`: the effect, names of arguments (of `one|other` that which the call has),
and more: `role`, `kind`, `bytes`, `parent`, `each`, `within`, `cloexec`, `if`, `unless` and `lost`
(`argument:FLAG|FLAG`, `argument.member:FLAG`, or `yes`), and what is shared (`files`, `directory`, `memory`, `thread`).
`Cases` has the same for values of the argument that a call's variants are by. Where nothing is said, paths and
references are used, and a path begins at the descriptor in front of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, Final

__all__ = ["EffectError", "EffectLines", "default_effects", "effects_of"]

_USED: Final = ("fd", "pid", "tid")
_SHARED: Final = {"files": "Files", "directory": "Directory", "memory": "Memory", "thread": "Thread"}


class EffectError(ValueError):
    """A line names what is not there, or fits nothing."""


class EffectLines:
    """The lines of `effects.json`, and which of them were of use."""

    def __init__(self, said: dict[str, Any]) -> None:
        self._said: dict[str, list[str]] = said["Calls"]
        self._cases: dict[str, dict[str, list[str]]] = said["Cases"]
        self._unused = set(self._said) | set(self._cases)

    def refuse_unused(self) -> None:
        """Raises EffectError if there are lines that fitted no call."""
        if self._unused:
            raise EffectError(f"effects that fit nothing: {'; '.join(sorted(self._unused))}")

    def add(self, call: dict[str, Any]) -> None:
        """Give a call, whose parameters and variants are there, its effects."""
        by_name = _by_name(call)
        lines = [line for patterns, lines in self._said.items() if self._fits(call["Name"], patterns) for line in lines]
        effects = effects_of(lines, call) or default_effects(call["Parameters"])
        if effects:
            call["Effects"] = effects
        for patterns, cases in self._cases.items():
            if self._fits(call["Name"], patterns):
                for values, case_lines in cases.items():
                    _case(call, values)["Effects"] = [_effect(line, by_name) for line in case_lines]

    def _fits(self, name: str, patterns: str) -> bool:
        fits = any(fnmatchcase(name, pattern) for pattern in patterns.split())
        if fits:
            self._unused.discard(patterns)
        return fits


def effects_of(lines: Iterable[str], function: dict[str, Any]) -> list[dict[str, Any]]:
    """The effects that lines say, of a function whose parameters are there. Raises EffectError."""
    by_name = _by_name(function)
    try:
        return [_effect(line, by_name) for line in lines]
    except EffectError as error:
        raise EffectError(f"{function['Name']}: {error}") from error


def _by_name(function: dict[str, Any]) -> dict[str, Any]:
    return {parameter["Name"]: parameter for parameter in function["Parameters"]}


def _case(call: dict[str, Any], values: str) -> dict[str, Any]:
    cases: list[dict[str, Any]] = call.get("Variants", {}).get("Cases", [])
    wanted = values.split()
    for case in cases:
        if case["Values"] == wanted:
            return case
        if set(wanted) <= set(case["Values"]):
            # One of its own: the first that has a value holds.
            made = {key: value for key, value in case.items() if key != "Effects"} | {"Values": wanted}
            case["Values"] = [value for value in case["Values"] if value not in wanted]
            cases.insert(cases.index(case), made)
            return made
    raise EffectError(f"{call['Name']} has no case for {values}")


def default_effects(parameters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of a call of which nothing is said: each thing that the arguments name or stand for is used."""
    made = []
    for parameter in parameters:
        index = parameter["Index"]
        if index < 0:
            continue
        if parameter["RawType"] == "path":
            made.append(_with_directories({"Effect": "UseEntity", "Parameters": [index]}, parameters))
        elif parameter["RawType"] in _USED:
            made.append({"Effect": "UseReference", "Parameters": [index]})
    return made


def _with_directories(effect: dict[str, Any], parameters: list[dict[str, Any]]) -> dict[str, Any]:
    by_index = {parameter["Index"]: parameter for parameter in parameters}
    places = []
    for index in effect["Parameters"]:
        before = by_index.get(index - 1, {})
        is_path = by_index[index]["RawType"] == "path" and index > 0
        places.append(index - 1 if is_path and before.get("RawType") == "fd" else None)
    return effect | {"At": places} if any(place is not None for place in places) else effect


def _index(name: str, by_name: dict[str, Any]) -> int:
    chosen = next((one for one in name.split("|") if one in by_name), None)
    if chosen is None:
        raise EffectError(f"there is no argument {name}")
    index: int = by_name[chosen]["Index"]
    return index


def _switch(text: str, by_name: dict[str, Any]) -> Any:
    if text == "yes":
        return True
    name, flags = text.split(":")
    name, _, member = name.partition(".")
    told = {"Member": member} if member else {}
    return {"Index": _index(name, by_name)} | told | {"Flags": flags.split("|")}


def _effect(line: str, by_name: dict[str, Any]) -> dict[str, Any]:
    kind, *words = line.split()
    names = [word for word in words if "=" not in word]
    made: dict[str, Any] = {"Effect": kind, "Parameters": [_index(name, by_name) for name in names]}
    made = _with_directories(made, list(by_name.values()))
    shares: dict[str, Any] = {}
    for word in words:
        key, is_said, value = word.partition("=")
        if not is_said:
            continue
        if key in ("role", "kind"):
            made[key.capitalize()] = value
        elif key in ("bytes", "parent"):
            made[key.capitalize()] = _index(value, by_name)
        elif key in ("each", "within"):
            made[key.capitalize()] = True
        elif key in _SHARED:
            shares[_SHARED[key]] = _switch(value, by_name)
        elif key in ("cloexec", "if", "unless", "lost"):
            name = {"cloexec": "CloseOnExec", "if": "Conditional", "unless": "Unless", "lost": "Lost"}[key]
            made[name] = _switch(value, by_name)
        else:
            raise EffectError(f"{line}: what is {key}?")
    return made | ({"Shares": shares} if shares else {})
