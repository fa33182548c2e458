"""Makes the content of clew's own description files out of what was captured, the rules, and the hints.

Runs on a developer's machine, and in tests. Pure: files are read and written by who calls this.

The hints (`sources/hints.json`): `Renamed` has the names of calls that a kernel's events call otherwise; `Prototypes`
are calls of which the captured kernel has no event; `Filters` and `Results` are patterns of calls' names by what they
choose, the first that fits; `In` and `InOut` are patterns `call.argument` of pointers through which the kernel reads,
or reads and writes. `Calls` has, by patterns of names, what an argument is besides: a table's name or keys of a
parameter, where other arguments are named instead of numbered; and `Variants` of the call, in the same manner. What
calls do is in `sources/effects.json` (`effects.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, Final

from clew.api.generate.effects import EffectLines
from clew.api.generate.rules import describe_argument
from clew.api.generate.sources import Argument, Sources, parse_prototypes

__all__ = ["HintError", "flag_tables_content", "format_content", "system_calls_content"]

RESULT_NAME: Final = "result"
RESULT_INDEX: Final = -1
SCHEMA: Final = "schema.json"
REQUESTS_TABLE: Final = "requests"
CALL_KEYS: Final = (
    "Told",
    "Unreturned",
    "Variants",
)
"""What hints of a call may have beside arguments' names."""

_INDEX_KEYS: Final = ("Count", "Bytes", "Total", "Coded")


class HintError(ValueError):
    """A hint names what is not there, or fits nothing."""


def flag_tables_content(sources: Sources) -> dict[str, Any]:
    """The file of tables. Raises HintError where a table has no values."""
    tables = {}
    for name, table in sources.flag_tables.items():
        values = sorted(
            [*sources.flag_values.get(name, ()), *map(tuple, table.get("values", ()))],
            key=lambda pair: (pair[1], pair[0]),
        )
        if not values:
            raise HintError(f"table {name} has no values")
        ordered = reversed(values) if table.get("is_descending") else values
        rows = [_row(member, value, table) for member, value in ordered]
        for other, mask in table.get("also", ()):
            rows += [[member, value, mask] for member, value in sources.flag_values[other]]
        tables[name] = {"Kind": table["kind"], "Values": rows}
        if "macro" in table:
            tables[name] |= {"Macro": table["macro"], "Masks": table["masks"]}
    tables[REQUESTS_TABLE] = {"Kind": "enum", "Values": [[name, number] for name, number, _ in sources.requests]}
    return {"$schema": SCHEMA, "FlagTables": tables}


def _row(name: str, value: int, table: dict[str, Any]) -> list[Any]:
    for mask, pattern in table.get("fields", ()):
        if re.fullmatch(pattern, name):
            return [name, value, mask]
    return [name, value]


def system_calls_content(sources: Sources) -> dict[str, Any]:
    """The file of system calls, by their numbers. Raises HintError for a hint that fits nothing."""
    hints = sources.hints
    prototypes = {hints["Renamed"].get(name, name): arguments for name, arguments in sources.prototypes.items()}
    for name, arguments in parse_prototypes(hints["Prototypes"]).items():
        prototypes.setdefault(name, arguments)
    nameless = prototypes.keys() - sources.numbers.keys()
    if nameless:
        raise HintError(f"no number for {', '.join(sorted(nameless))}")
    kinds = {name: table["kind"] for name, table in sources.flag_tables.items()}
    maker = _Maker(hints, kinds, EffectLines(sources.effects), sources.requests)
    by_number = sorted(sources.numbers, key=lambda name: (min(sources.numbers[name].values()), name))
    calls = [maker.call(name, sources.numbers[name], prototypes.get(name)) for name in by_number]
    maker.refuse_unused()
    return {"$schema": SCHEMA, "Source": sources.origin, "SystemCalls": calls}


def _fits(name: str, patterns: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns.split())


class _Maker:
    """Makes calls, and remembers which hints were of use. `kinds`: which kind each table of flags is."""

    def __init__(
        self,
        hints: dict[str, Any],
        kinds: dict[str, str],
        effects: EffectLines,
        requests: tuple[tuple[str, int, str], ...],
    ) -> None:
        self._hints, self._kinds, self._effects, self._requests = hints, kinds, effects, requests
        self._unused = {f"{key}: {name}" for key in ("In", "InOut") for name in hints[key]}
        self._unused |= {
            f"{patterns}: {name}" for patterns, said in hints["Calls"].items() for key in said for name in key.split()
        }

    def refuse_unused(self) -> None:
        """Raises HintError or EffectError if there are hints or effects that fitted no call."""
        self._effects.refuse_unused()
        if self._unused:
            raise HintError(f"hints that fit nothing: {'; '.join(sorted(self._unused))}")

    def _first(self, key: str, name: str) -> str:
        choices: dict[str, str] = self._hints[key]
        return next(choice for choice, patterns in choices.items() if _fits(name, patterns))

    def call(self, name: str, numbers: dict[str, int], arguments: list[Argument] | None) -> dict[str, Any]:
        """A system call; its arguments are None where nobody says what they are."""
        made: dict[str, Any] = {"Name": name, "Number": numbers, "Filter": self._first("Filters", name)}
        if arguments is None:
            return made
        raw_type = self._first("Results", name)
        result = {"Index": RESULT_INDEX, "Name": RESULT_NAME, "CType": "long", "RawType": raw_type}
        if raw_type == "fd":
            result |= {"Type": "Reference", "EntityType": "File"}
        described = (describe_argument(arguments, index) for index in range(len(arguments)))
        parameters = [*(self._with_struct(parameter) for parameter in described), result]
        by_name = {parameter["Name"]: parameter for parameter in parameters}
        self._direct(name, parameters)
        said = list(self._said(name, by_name))
        for argument, change in said:
            if argument == RESULT_NAME and change is None:
                # It does not return.
                parameters.remove(result)
            elif argument in by_name:
                self._change(by_name[argument], change, by_name)
        for key, change in said:
            if key == "Variants":
                made["Variants"] = self._variants(change, by_name)
            elif key == "Unreturned":
                made["Unreturned"] = change
            elif key == "Told":
                made["Told"] = [_index(name, by_name) for name in change]
        made["Parameters"] = parameters
        self._effects.add(made)
        return made

    def _with_struct(self, parameter: dict[str, Any]) -> dict[str, Any]:
        """A parameter with the name of the structure that it leads to, if hints have that of its C type."""
        name = self._struct_of(parameter["CType"]) if _is_address(parameter["CType"]) else None
        return parameter if name is None else parameter | {"RawType": "struct", "Struct": name}

    def _struct_of(self, c_type: str) -> str | None:
        words = (word for word in c_type.replace("*const", "*").split() if word not in ("const", "struct"))
        name: str | None = self._hints["Structs"].get(" ".join(words))
        return name

    def _typed_requests(self, by_name: dict[str, Any], said: set[Any]) -> list[dict[str, Any]]:
        """Cases of the requests of which a macro says what the argument leads to, by that and by the way it goes."""
        cases: dict[tuple[str, str, str], list[str]] = {}
        for name, number, c_type in self._requests:
            struct = self._struct_of(c_type)
            direction = _DIRECTIONS[number >> 30]
            if name not in said and struct is not None and direction:
                cases.setdefault((struct, direction, c_type), []).append(name)
        made = []
        for (struct, direction, c_type), names in sorted(cases.items()):
            own = {"CType": f"{c_type} *", "RawType": "struct", "Struct": struct, "Direction": direction}
            parameter = {key: value for key, value in by_name["arg"].items() if key != "Coded"} | own
            made.append({"Values": names, "Parameters": [_without_default(parameter)]})
        return made

    def _direct(self, name: str, parameters: list[dict[str, Any]]) -> None:
        for key, direction in (("InOut", "inout"), ("In", "in")):
            for pattern in self._hints[key]:
                for parameter in parameters:
                    if fnmatchcase(f"{name}.{parameter['Name']}", pattern):
                        self._unused.discard(f"{key}: {pattern}")
                        if "Direction" in parameter:
                            parameter["Direction"] = direction
        for parameter in parameters:
            # It is what holds where nothing is said.
            if parameter.get("Direction") == "in":
                del parameter["Direction"]

    def _said(self, name: str, by_name: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """What the hints say of a call: names of arguments, or keys of the call, and what of them."""
        for patterns, said in self._hints["Calls"].items():
            if _fits(name, patterns):
                for key, change in said.items():
                    for argument in key.split():
                        if argument in by_name or argument in CALL_KEYS:
                            self._unused.discard(f"{patterns}: {argument}")
                        yield argument, change

    def _change(self, parameter: dict[str, Any], change: Any, by_name: dict[str, Any]) -> None:
        if isinstance(change, str):
            if change not in self._kinds:
                raise HintError(f"there is no table {change}")
            # What is a flag modifies nothing that has a mode.
            parameter.pop("Type", None)
            change = {"Flags": change, "RawType": self._kinds[change]}
        for key, value in change.items():
            if value is None:
                parameter.pop(key, None)
            elif key in _INDEX_KEYS:
                if key == "Bytes" and value == RESULT_NAME and key in parameter:
                    # A result can be how much there would have been.
                    parameter["Room"] = parameter[key]
                if key in ("Count", "Bytes"):
                    parameter.pop("Count" if key == "Bytes" else "Bytes", None)
                parameter[key] = _index(value, by_name)
            elif key == "Conditional":
                parameter[key] = {"Index": _index(value["Index"], by_name), "Flags": value["Flags"]}
            else:
                parameter[key] = value
        _without_default(parameter)

    def _variants(self, said: dict[str, Any], by_name: dict[str, Any]) -> dict[str, Any]:
        cases = []
        for case in said["Cases"]:
            made = {key: value for key, value in case.items() if key not in ("Parameters", "Variants")}
            parameters = []
            for name, change in case.get("Parameters", {}).items():
                parameter = dict(by_name[name])
                self._change(parameter, change, by_name)
                parameters.append(parameter)
            if parameters:
                made["Parameters"] = parameters
            if "Told" in made:
                made["Told"] = [_index(name, by_name) for name in made["Told"]]
            if "Variants" in case:
                made["Variants"] = self._variants(case["Variants"], by_name)
            cases.append(made)
        if by_name[said["By"]].get("Flags") == REQUESTS_TABLE:
            cases += self._typed_requests(by_name, {value for case in cases for value in case["Values"]})
        return (
            {"By": _index(said["By"], by_name)} | {key: said[key] for key in said if key == "Mask"} | {"Cases": cases}
        )


_DIRECTIONS: Final = (None, "in", "out", "inout")
"""By the two highest bits of a request."""


def _without_default(parameter: dict[str, Any]) -> dict[str, Any]:
    """A parameter without what holds where nothing is said."""
    if parameter.get("Direction") == "in":
        del parameter["Direction"]
    return parameter


def _is_address(c_type: str) -> bool:
    return "*" in c_type or c_type in ("cap_user_header_t", "cap_user_data_t")


def _index(name: str, by_name: dict[str, Any]) -> int:
    if name not in by_name:
        raise HintError(f"there is no argument {name}")
    index: int = by_name[name]["Index"]
    return index


def format_content(content: dict[str, Any]) -> str:
    """JSON with a line for each call's head, parameter and case, so that changes can be read."""
    pieces = ["{"]
    keys = list(content)
    for key, value in content.items():
        end = "" if key == keys[-1] else ","
        if isinstance(value, list):
            calls = ",\n".join(_format_call(call) for call in value)
            pieces.append(f" {json.dumps(key)}: [\n{calls}\n ]{end}")
        elif isinstance(value, dict):
            tables = ",\n".join(_format_table(name, table) for name, table in value.items())
            pieces.append(f" {json.dumps(key)}: {{\n{tables}\n }}{end}")
        else:
            pieces.append(f" {json.dumps(key)}: {json.dumps(value)}{end}")
    return "\n".join([*pieces, "}"]) + "\n"


def _format_call(call: dict[str, Any]) -> str:
    lists = {key: value for key, value in call.items() if key in ("Parameters", "Effects", "Functions")}
    head = json.dumps({key: value for key, value in call.items() if key not in (*lists, "Variants")})
    rest = [
        f'   "{key}": [\n' + ",\n".join(f"    {json.dumps(one)}" for one in value) + "\n   ]"
        for key, value in lists.items()
    ]
    if "Variants" in call:
        variants = {key: value for key, value in call["Variants"].items() if key != "Cases"}
        cases = ",\n".join(f"    {json.dumps(case)}" for case in call["Variants"]["Cases"])
        rest.append(f'   "Variants": {json.dumps(variants)[:-1]}, "Cases": [\n{cases}\n   ]}}')
    return "  " + (f"{head[:-1]},\n" + ",\n".join(rest) + "\n  }" if rest else head)


def _format_table(name: str, table: dict[str, Any]) -> str:
    """A table or a structure: a line for its head, and for each of its rows."""
    (key, lines) = next((key, value) for key, value in table.items() if isinstance(value, list))
    rows = ",\n".join(f"   {json.dumps(row)}" for row in lines)
    head = json.dumps({name: value for name, value in table.items() if name != key})
    return f"  {json.dumps(name)}: {head[:-1]}, {json.dumps(key)}: [\n{rows}\n  ]}}"
