"""Makes the descriptions of operations of io_uring out of those of system calls, whose arguments are elsewhere there.

Runs on a developer's machine, and in tests. Pure. `sources/ring_operations.json` has each operation as a list: the
system call, or arguments as C has them; `argument=field` for each argument that there is, in that order; and then the
filter where there is no system call, keys of parameters by the arguments' names, and arguments that are told with
their names, as `[declaration, field, keys]`. `Direct`: `file_index` may say that a file of the ring's own is meant.
`More` are arguments that all have; `Renamed` are those of system calls that are other ones here. Numbers of operations
are the table's `io_uring_operations`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from clew.api.generate.effects import default_effects
from clew.api.generate.rules import describe_argument
from clew.api.generate.sources import parse_prototypes

__all__ = ["RingError", "ring_operations_content"]

_TABLE: Final = "io_uring_operations"
_RESULT: Final = -1
_INDEX_KEYS: Final = ("Count", "Bytes", "Room", "Total", "Coded")
_EFFECT_INDEX_KEYS: Final = ("Bytes", "Parent")
_CONDITION_KEYS: Final = ("Conditional", "Unless", "Lost")
_FIXED: Final = "IOSQE_FIXED_FILE"
_DIRECT: Final = "Direct"
_DIRECT_MORE: Final = ["__u32 file_index", "file_index", {"RawType": "uint"}]


class RingError(ValueError):
    """An operation names what is not there."""


def ring_operations_content(
    said: dict[str, Any], calls: Iterable[dict[str, Any]], tables: dict[str, Any]
) -> dict[str, Any]:
    """The file of operations, by opcode; `calls` and `tables` are those of the other files. Raises RingError."""
    numbers = {name: int(number) for name, number, *_ in tables[_TABLE]["Values"]}
    by_name = {call["Name"]: call for call in calls}
    undescribed = numbers.keys() ^ said["Operations"].keys()
    if undescribed:
        raise RingError(f"no number, or no description: {', '.join(sorted(undescribed))}")
    bits = {name: value for name, value, *_ in tables["io_uring_entry_flags"]["Values"]}
    operations = []
    for name in sorted(numbers, key=lambda one: numbers[one]):
        try:
            operations.append(_Maker(name, numbers[name], said, by_name, bits[_FIXED]).make())
        except KeyError as error:
            raise RingError(f"{name}: there is no {error}") from error
    return {"$schema": "schema.json", "RingOperations": operations}


def _parameter(declaration: str, index: int, field: str, keys: dict[str, Any]) -> dict[str, Any]:
    [arguments] = parse_prototypes([f"one({declaration})"]).values()
    return describe_argument(arguments, 0) | {"Index": index, "Field": field} | keys


class _Maker:
    """Makes one operation."""

    def __init__(self, name: str, opcode: int, said: dict[str, Any], calls: dict[str, Any], fixed: int) -> None:
        whole, fields, *rest = said["Operations"][name]
        self._name, self._opcode, self._fixed = name, opcode, fixed
        self._is_direct = _DIRECT in rest
        words = [one for one in rest if isinstance(one, str) and one != _DIRECT]
        self._fields = dict(pair.split("=") for pair in fields.split())
        self._keys: dict[str, Any] = dict(said["Renamed"])
        for one in rest:
            self._keys |= one if isinstance(one, dict) else {}
        more = [one for one in rest if isinstance(one, list)]
        self._more = [*more, *([_DIRECT_MORE] if self._is_direct else []), *said["More"]]
        if whole.startswith("("):
            self._call: dict[str, Any] = self._declared(whole, words[0])
        else:
            self._call = calls[whole]

    def _declared(self, arguments: str, kind: str) -> dict[str, Any]:
        [found] = parse_prototypes([f"one{arguments}"]).values()
        parameters = [describe_argument(found, index) for index in range(len(found))]
        for parameter in parameters:
            parameter.update(self._keys.get(parameter["Name"], {}))
        result = {"Index": _RESULT, "Name": "result", "CType": "long", "RawType": "long"}
        return {"Filter": kind, "Parameters": [*parameters, result], "Effects": default_effects(parameters)}

    def make(self) -> dict[str, Any]:
        """The operation, as files have it."""
        call = {one["Name"]: one for one in self._call["Parameters"]}
        places = {call[name]["Index"]: at for at, name in enumerate(self._fields)} | {_RESULT: _RESULT}
        parameters = []
        for name, field in self._fields.items():
            kept = _moved(call[name], places, _INDEX_KEYS)
            parameters.append(kept | self._keys.get(name, {}) | {"Index": places[call[name]["Index"]], "Field": field})
        for declaration, field, *keys in self._more:
            named = {"Named": True} if "Behind" not in (keys or [{}])[0] else {}
            parameters.append(_parameter(declaration, len(parameters), field, (keys[0] if keys else {}) | named))
        for parameter in parameters:
            if parameter.get("Direction") == "in":
                del parameter["Direction"]
        result = call["result"] | {"CType": "int"} | self._keys.get("result", {})
        by_field = {one["Field"]: one["Index"] for one in parameters}
        effects = [made for one in self._call.get("Effects", ()) if (made := _moved_effect(one, places)) is not None]
        effects.append({"Effect": "UseReference", "Parameters": [by_field["ring"]], "Role": "entered"})
        made = {
            "Name": self._name,
            "Opcode": self._opcode,
            "Filter": self._call["Filter"],
            "Parameters": [*parameters, result],
            "Effects": effects,
        }
        return self._with_files(made, by_field)

    def _with_files(self, made: dict[str, Any], by_field: dict[str, int]) -> dict[str, Any]:
        """With what is no descriptor where the entry says that: a file of the ring's own."""
        parameters, effects = made["Parameters"], made["Effects"]
        file = next((one for one in parameters if one.get("Field") == "fd" and one["RawType"] == "fd"), None)
        cases: list[dict[str, Any]] = []
        plain: dict[str, Any] = {}
        if file is not None:
            plain = {key: value for key, value in file.items() if key not in ("Type", "EntityType", "Flags")}
            plain["RawType"] = "int"
            others = _without(effects, file["Index"])
            cases.append({"Values": [_FIXED], "Parameters": [plain], "Effects": others})
        if not self._is_direct:
            if cases:
                made["Variants"] = {"By": by_field["flags"], "Mask": self._fixed, "Cases": cases}
            return made
        result = parameters[-1]
        makes = result["RawType"] == "fd"
        gone = _RESULT if makes or file is None else file["Index"]
        for case in [*cases, {"Values": [0], "Effects": effects}]:
            own = {"Values": [0], "Effects": case["Effects"]}
            if makes:
                own["Parameters"] = [result]
            elif file is not None and case["Values"] == [0]:
                own["Parameters"] = [file]
            case["Effects"] = _without(case["Effects"], gone)
            case["Variants"] = {"By": by_field["file_index"], "Cases": [own]}
            cases = cases if case in cases else [*cases, case]
        if file is not None and not makes:
            parameters[file["Index"]] = plain
        if makes:
            kept = {key: value for key, value in result.items() if key not in ("Type", "EntityType")}
            made["Parameters"] = [*parameters[:-1], kept | {"RawType": "int"}]
        made["Effects"] = _without(effects, gone)
        made["Variants"] = {"By": by_field["flags"], "Mask": self._fixed, "Cases": cases}
        return made


def _moved(parameter: dict[str, Any], places: dict[int, int], keys: Iterable[str]) -> dict[str, Any]:
    """A parameter whose others are in other places; what it says of those that are not there is left out."""
    moved = dict(parameter)
    for key in keys:
        if key in moved:
            if moved[key] in places:
                moved[key] = places[moved[key]]
            else:
                del moved[key]
    condition = moved.get("Conditional")
    if condition is not None:
        moved["Conditional"] = condition | {"Index": places[condition["Index"]]}
    return moved


def _moved_effect(effect: dict[str, Any], places: dict[int, int]) -> dict[str, Any] | None:
    """The same of an effect; None: it is about what is not there."""
    if any(index not in places for index in effect["Parameters"]):
        return None
    moved = effect | {"Parameters": [places[index] for index in effect["Parameters"]]}
    if "At" in moved:
        moved["At"] = [None if index is None else places.get(index) for index in moved["At"]]
    for key in _EFFECT_INDEX_KEYS:
        if key in moved:
            moved[key] = places[moved[key]]
    for key in (*_CONDITION_KEYS, "CloseOnExec"):
        if isinstance(moved.get(key), dict):
            moved[key] = moved[key] | {"Index": places[moved[key]["Index"]]}
    return moved


def _without(effects: list[dict[str, Any]], index: int) -> list[dict[str, Any]]:
    """Those that are not about a parameter."""
    return [one for one in effects if index not in one["Parameters"] and one.get("Parent") != index]
