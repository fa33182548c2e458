"""What an injection comes to for one call: the expressions of a capture that says what is done, and where.

Runs in the controller. Pure. The runtime works them out when the call begins (enum InjectField).
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

from clew.api.description import Function, Parameter
from clew.api.descriptions import Descriptions
from clew.api.injection import Argument, InjectionSpec
from clew.api.values import unsigned, width_bits
from clew.api.vocabulary import FILTERS, INLINE
from clew.dataclass import dataclass
from clew.errors import UsageError
from clew.protocol._constants import MAX_CAPTURE_TEXT, Injected, InjectField

__all__ = ["InjectionPlan", "choose_system_calls", "plan_injection"]

_ERRNO_RESULTS: Final = {"minus_one_errno": -1, "null_errno": 0}
"""What functions give that fail, where they leave an error number besides."""


_TABLES: Final = {"fd": "directory_fd", "signal": "signals", "clock": "clocks"}
"""Which table a parameter of a raw type has anyway."""


@dataclass(frozen=True)
class InjectionPlan:
    """What is captured of the calls of one function: `expressions` by the numbers of InjectField, where `condition`
    holds, if there is one. `delays_return`: their threads are held behind them, which is captured besides."""

    expressions: tuple[str, ...]
    condition: str | None
    delays_return: bool = False


def choose_system_calls(spec: InjectionSpec, descriptions: Descriptions) -> dict[int, InjectionPlan]:
    """By number: the system calls that an injection is about. Raises UsageError where it can't be done to any that one
    of its names means."""
    plans: dict[int, InjectionPlan] = {}
    for what in spec.what:
        if "!" in what:
            continue
        found = _find_system_calls(spec, what, descriptions)
        reasons = {}
        for number, function in found.items():
            try:
                plans[number] = plan_injection(spec, function, descriptions)
            except UsageError as error:
                reasons[function.name] = error
        if reasons and len(reasons) == len(found):
            raise next(iter(reasons.values()))
    return plans


def _find_system_calls(spec: InjectionSpec, what: str, descriptions: Descriptions) -> dict[int, Function]:
    calls = descriptions.system_calls
    if what.startswith("%"):
        kinds = {kind.lower(): kind for kind in FILTERS}
        if what[1:].lower() not in kinds:
            raise UsageError(f"{spec.text!r}: {what}: there are {', '.join(f'%{kind}' for kind in kinds)}")
        return {number: one for number, one in calls.items() if one.filter == kinds[what[1:].lower()]}
    found = {number: one for number, one in calls.items() if fnmatchcase(one.name, what)}
    if not found:
        near = difflib.get_close_matches(what, [one.name for one in calls.values()], 3)
        hint = f"; there is {', '.join(near)}" if near else "; of functions say IMAGE!NAME"
        raise UsageError(f"{spec.text!r}: no system call is called {what!r}{hint}")
    return found


def plan_injection(spec: InjectionSpec, function: Function, descriptions: Descriptions) -> InjectionPlan:
    """What is captured of the calls of `function`. Raises UsageError where that can't be done to it."""
    fields = dict.fromkeys(InjectField, "0")
    what = 0
    if spec.has_result:
        result, error = _answer(spec, function)
        what |= Injected.RESULT
        fields[InjectField.RESULT] = str(unsigned(result, 64))
        if error is not None:
            fields |= {InjectField.ERRNO_ADDRESS: "&errno", InjectField.ERRNO: str(error)}
    if spec.delay_enter_ns is not None:
        what |= Injected.DELAY_ENTER
        fields[InjectField.DELAY_ENTER] = str(spec.delay_enter_ns)
    if spec.delay_exit_ns is not None:
        _ask_for_return(spec, function)
        what |= Injected.DELAY_EXIT
        fields[InjectField.DELAY_EXIT] = str(spec.delay_exit_ns)
    if spec.signal is not None:
        what |= Injected.SIGNAL
        fields[InjectField.SIGNAL] = str(spec.signal)
    when = {InjectField.FIRST: spec.when.first, InjectField.LAST: spec.when.last, InjectField.STEP: spec.when.step}
    fields |= {InjectField.WHAT: str(what)} | {field: str(number) for field, number in when.items()}
    expressions = tuple(fields[number] for number in sorted(fields))
    # Behind a system call the thread is in the dispatcher anyway.
    delays_return = spec.delay_exit_ns is not None and not function.numbers
    return InjectionPlan(expressions, _condition(spec, function, descriptions), delays_return)


def _returns(function: Function) -> bool:
    return function.parameters is None or function.result is not None


def _ask_for_return(spec: InjectionSpec, function: Function) -> None:
    if not _returns(function):
        raise UsageError(f"{spec.text!r}: {function.name} does not return, so it has no result and no end")


def _answer(spec: InjectionSpec, function: Function) -> tuple[int, int | None]:
    """The result of the call, and the error number that is left besides."""
    _ask_for_return(spec, function)
    if function.numbers:
        if spec.error is not None and spec.result is not None:
            raise UsageError(f"{spec.text!r}: {function.name} is a system call: its result says the error, too")
        return (-spec.error if spec.error is not None else spec.result or 0), None
    if spec.result is not None:
        return spec.result, spec.error
    if function.error not in _ERRNO_RESULTS:
        raise UsageError(
            f"{spec.text!r}: no description says how {function.name} fails: say its result, too, as in retval=-1"
        )
    return _ERRNO_RESULTS[function.error], spec.error


def _condition(spec: InjectionSpec, function: Function, descriptions: Descriptions) -> str | None:
    asked = []
    if spec.path is not None:
        asked.append(_path_condition(spec, function, spec.path))
    if spec.fd is not None:
        descriptors = [one for one in function.arguments if one.raw_type == "fd"]
        _ask_for(descriptors, spec, function, "takes a descriptor")
        asked.append(_any(f"(i32)arg{one.index + 1} == {spec.fd}" for one in descriptors))
    asked += [_argument_condition(spec, one, function, descriptions) for one in spec.arguments]
    if spec.condition is not None:
        asked.append(spec.condition)
    return " && ".join(f"({one})" for one in asked) or None


def _any(conditions: Iterable[str]) -> str:
    return " || ".join(f"({one})" for one in conditions)


def _ask_for(parameters: Sequence[Parameter], spec: InjectionSpec, function: Function, what: str) -> None:
    if not parameters:
        why = "nobody knows its parameters" if function.parameters is None else f"nothing of it {what}"
        raise UsageError(f"{spec.text!r}: {function.name}: {why}")


def _path_condition(spec: InjectionSpec, function: Function, path: str) -> str:
    """Of what names no path, that which descriptors lead to counts."""
    pattern = _literal(path)
    paths = [one for one in function.arguments if one.raw_type == "path" and one.direction == "in"]
    if paths:
        return _any(f"match({_text_of(one)}, {pattern})" for one in paths)
    descriptors = [one for one in function.arguments if one.raw_type == "fd"]
    _ask_for(descriptors, spec, function, "is a path, or a descriptor")
    return _any(f"match(fd_path((i32)arg{one.index + 1}), {pattern})" for one in descriptors)


def _text_of(parameter: Parameter) -> str:
    return f"str(arg{parameter.index + 1}, {MAX_CAPTURE_TEXT})"


def _literal(text: str) -> str:
    data = os.fsencode(text)
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}" for byte in data)
    return '"' + "".join(plain) + '"'


def _argument_condition(spec: InjectionSpec, asked: Argument, function: Function, descriptions: Descriptions) -> str:
    parameter = next((one for one in function.arguments if one.name == asked.name), None)
    if parameter is None:
        names = ", ".join(one.name for one in function.arguments)
        has = "nobody knows its parameters" if function.parameters is None else f"it has {names or 'none'}"
        raise UsageError(f"{spec.text!r}: {function.name} has no parameter {asked.name!r}: {has}")
    if parameter.raw_type in INLINE:
        if parameter.raw_type not in ("path", "string") or parameter.direction != "in" or asked.are_bits:
            raise UsageError(f"{spec.text!r}: {function.name}: {asked.name} leads to no number and to no string")
        return f"match({_text_of(parameter)}, {_literal(asked.text)})"
    bits = width_bits(parameter.c_type)
    value = unsigned(_value(spec, asked, parameter, function, descriptions), bits)
    register = f"(u{bits})arg{parameter.index + 1}"
    return f"({register} & {value}) == {value}" if asked.are_bits else f"{register} == {value}"


def _value(
    spec: InjectionSpec, asked: Argument, parameter: Parameter, function: Function, descriptions: Descriptions
) -> int:
    """A number, names of the parameter's table, or several of both with `|`."""
    table, value = descriptions.flag_table(parameter.flags or _TABLES.get(parameter.raw_type)), 0
    for word in asked.text.split("|"):
        flag = table.find(word.strip()) if table is not None else None
        try:
            value |= flag.value if flag is not None else int(word, 0)
        except ValueError:
            where = f"of {table.name}" if table is not None else "there"
            reason = f"{asked.name}: {word!r} is no number, and no name {where}"
            raise UsageError(f"{spec.text!r}: {function.name}: {reason}") from None
    return value
