"""All descriptions that hold, put together: which function has a number or a name, which table a name, what a call's
values make of it.

Runs in the controller. Reads nothing, and makes no text.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from clew.api.description import Case, Description, Flag, FlagTable, Function, Parameter, Struct, Variants
from clew.api.vocabulary import RESULT
from clew.dataclass import replace

if TYPE_CHECKING:
    from clew.api.redaction import Redaction

__all__ = ["Descriptions"]

_RESULT_TYPE: Final = "int"
"""Of a function that passes its arguments to a system call, if nothing else is said."""


class Descriptions:
    """What description files say, later ones over earlier ones.

    `system_calls`: by number. `ring_operations`, of io_uring: by opcode. `functions`: by the library's pattern and the
    function's name. `flag_tables` and `structs`: by name. `redaction`: what of calls is not to be told.
    """

    def __init__(self) -> None:
        self.system_calls: dict[int, Function] = {}
        self.ring_operations: dict[int, Function] = {}
        self.functions: dict[tuple[str, str], Function] = {}
        self._prefixes: dict[str, str] = {}
        self.flag_tables: dict[str, FlagTable] = {}
        self.structs: dict[str, Struct] = {}
        self.redaction: Redaction | None = None
        self._cases: dict[int, tuple[Variants, dict[int, Case]]] = {}
        """By the identity of variants: these, and their cases by the numbers that choose them, maybe hundreds."""
        self._calls_by_name: dict[str, Function] = {}
        self._functions_by_name: dict[str, list[tuple[str, Function]]] = {}
        """With the patterns of their libraries, what was added last first; both are made when somebody asks."""

    def add(self, description: Description, architecture: str) -> None:
        """Put a description over those that are here. System calls without a number for `architecture` are left out,
        and one that is known here by name goes where it is said to be now."""
        self._forget()
        for table in description.flag_tables:
            self.flag_tables[table.name] = table
        for struct in description.structs:
            self.structs[struct.name] = struct
        places = {call.name: number for number, call in self.system_calls.items()}
        for call in description.system_calls:
            number = call.numbers.get(architecture)
            if number is not None:
                if call.name in places:
                    self.system_calls.pop(places[call.name], None)
                self.system_calls[number] = call
        for operation in description.ring_operations:
            if operation.opcode is not None:
                self.ring_operations[operation.opcode] = operation
        for library in description.libraries:
            if library.prefix is not None:
                self._prefixes[library.name] = library.prefix
            for function in library.functions:
                # Anew, so that what was added last is last.
                self.functions.pop((library.name, function.name), None)
                self.functions[library.name, function.name] = function

    def _forget(self) -> None:
        """There are others now than what was worked out is about."""
        self._cases.clear()
        self._calls_by_name, self._functions_by_name = {}, {}

    def add_table(self, table: FlagTable) -> None:
        """Put a table over that of its name."""
        self.flag_tables[table.name] = table

    def add_struct(self, struct: Struct) -> None:
        """Put a structure over that of its name."""
        self.structs[struct.name] = struct if self.redaction is None else self.redaction.struct(struct)

    def redact(self, redaction: Redaction) -> None:
        """Hide from now on what is to be hidden, of all that was added."""
        self.redaction = redaction
        if redaction.changes_descriptions:
            self._forget()
            self.system_calls = {number: redaction.function(one) for number, one in self.system_calls.items()}
            self.ring_operations = {code: redaction.function(one) for code, one in self.ring_operations.items()}
            self.functions = {key: redaction.function(one) for key, one in self.functions.items()}
            self.structs = {name: redaction.struct(one) for name, one in self.structs.items()}

    def hidden(self, function: Function) -> Function:
        """A function that is described somewhere else, as what was added is."""
        return function if self.redaction is None else self.redaction.function(function)

    def redacted(self, text: str) -> str:
        """A name, without what is not to be told."""
        return text if self.redaction is None else self.redaction.text(text)

    def flag_table(self, name: str | None) -> FlagTable | None:
        """The table of that name; None: there is none."""
        return None if name is None else self.flag_tables.get(name)

    def struct(self, name: str | None) -> Struct | None:
        """The structure of that name; None: there is none."""
        return None if name is None else self.structs.get(name)

    def system_calls_of(
        self, filters: Collection[str] | None = (), n_numbers: int = 0, *, sees_world: bool = False
    ) -> list[tuple[int, Function]]:
        """All system calls, or those of some filters, by number; None: none. Numbers below `n_numbers` that nobody
        describes are functions of which nothing is known. `sees_world`: those, too, that change what others are about.
        """
        rest = (
            (number, Function(f"syscall_{number:#x}", "Other", None, {"": number}, "negative_errno"))
            for number in range(n_numbers)
            if number not in self.system_calls
        )

        def is_chosen(function: Function) -> bool:
            is_asked = filters is not None and (not filters or function.filter in filters)
            return is_asked or (sees_world and function.changes_world)

        found = [one for one in (*self.system_calls.items(), *rest) if is_chosen(one[1])]
        return sorted(found, key=lambda one: one[0])

    def ring_operations_of(self, filters: Collection[str] = ()) -> list[tuple[int, Function]]:
        """All operations of io_uring, or those of some filters, by opcode."""
        told = sorted(self.ring_operations.items())
        return [(opcode, function) for opcode, function in told if not filters or function.filter in filters]

    def find_system_call(self, name: str) -> Function | None:
        """The system call of that name."""
        if not self._calls_by_name:
            self._calls_by_name = {call.name: call for call in reversed(self.system_calls.values())}
        return self._calls_by_name.get(name)

    def _functions_named(self, name: str) -> list[tuple[str, Function]]:
        # A library has thousands, and each is asked for.
        if not self._functions_by_name:
            for (pattern, own_name), function in reversed(self.functions.items()):
                self._functions_by_name.setdefault(own_name, []).append((pattern, function))
        return self._functions_by_name.get(name, [])

    def find_function(self, library: str, name: str) -> Function | None:
        """The function `name` of the library whose file is called `library`; of several, that which was added last."""
        found = (function for pattern, function in self._functions_named(name) if fnmatchcase(library, pattern))
        one = next(found, None)
        return self._standing_for_call(library, name) if one is None else self._as_call(one)

    def _standing_for_call(self, library: str, name: str) -> Function | None:
        """The system call that a function stands for by its name, as a function."""
        for pattern, prefix in self._prefixes.items():
            call = self.find_system_call(name.removeprefix(prefix))
            if name.startswith(prefix) and fnmatchcase(library, pattern) and call is not None:
                return replace(call, numbers={})
        return None

    def find_anywhere(self, name: str) -> Function | None:
        """The function `name` of whatever library has one, the one that was added last."""
        found = next((function for _, function in self._functions_named(name)), None)
        return None if found is None else self._as_call(found)

    def _as_call(self, function: Function) -> Function:
        """A function as its system call is described, if it has one; what that does is told when it is made."""
        call = None if function.call is None else self.find_system_call(function.call)
        if call is None or call.parameters is None:
            return function
        own = {one.index: one for one in function.parameters or ()}
        c_type = own[RESULT].c_type if RESULT in own else _RESULT_TYPE
        parameters = [own.pop(one.index, one) for one in _with_result(call.parameters, c_type)]
        # Those that the call has not are behind its own, and in front of the result.
        n_arguments = len(call.arguments)
        parameters[n_arguments:n_arguments] = own.values()
        variants = None if call.variants is None else _variants_with_result(call.variants, c_type)
        if function.variants is not None and variants is not None:
            # Cases in front hold.
            variants = replace(variants, cases=function.variants.cases + variants.cases)
        return self.hidden(replace(function, parameters=tuple(parameters), variants=variants, told=call.told))

    def with_values(self, function: Function, values: Sequence[int | None]) -> Function:
        """A function as it looks when it is called with `values`, by its variants and conditions.

        Where a value that is asked for is not known (None), there is no variant, and what is conditional is there.
        """
        parameters = function.parameters
        if parameters is None or function.is_always_same:
            return function
        label, effects, variants, order = function.label, function.effects, function.variants, function.told
        while variants is not None:
            case = self._find_case(parameters, variants, values)
            if case is None:
                break
            own = {parameter.index: parameter for parameter in case.parameters}
            n_arguments = len(parameters) if case.n_arguments is None else case.n_arguments
            kept = (parameter for parameter in parameters if parameter.index < n_arguments)
            parameters = tuple(own.pop(parameter.index, parameter) for parameter in kept)
            # A result may be described by the case alone.
            parameters += (own[RESULT],) if RESULT in own else ()
            label, variants = case.label or label, case.variants
            effects = effects if case.effects is None else case.effects
            order = order if case.told is None else case.told
        parameters = tuple(one for one in parameters if self._is_there(one, function, values))
        if parameters == function.parameters and effects is function.effects and order is function.told:
            return function
        return replace(function, parameters=parameters, variants=None, label=label, effects=effects, told=order)

    def _find_case(
        self, parameters: Sequence[Parameter], variants: Variants, values: Sequence[int | None]
    ) -> Case | None:
        found = _at(values, variants.by)
        if found is None:
            return None
        if id(variants) not in self._cases:
            by_value: dict[int, Case] = {}
            for case in variants.cases:
                for value in self.case_values(parameters, variants, case):
                    by_value.setdefault(value, case)
            self._cases[id(variants)] = variants, by_value
        return self._cases[id(variants)][1].get(_chosen(variants, found))

    def case_values(self, parameters: Sequence[Parameter], variants: Variants, case: Case) -> list[int]:
        """The numbers by which a case of a function with those parameters is chosen: bits of what `variants` are by."""
        table = self._table_of(parameters, variants.by)
        flags = [table and table.find(own) if isinstance(own, str) else Flag("", own) for own in case.values]
        return [_chosen(variants, flag.value) for flag in flags if flag]

    def _table_of(self, parameters: Sequence[Parameter], index: int) -> FlagTable | None:
        parameter = next((one for one in parameters if one.index == index), None)
        return None if parameter is None else self.flag_table(parameter.flags)

    def _is_there(self, parameter: Parameter, function: Function, values: Sequence[int | None]) -> bool:
        condition = parameter.conditional
        value = None if condition is None else _at(values, condition.index)
        if condition is None or value is None:
            return True
        table = self._table_of(function.parameters or (), condition.index)
        flags = [flag for name in condition.flags if table and (flag := table.find(name))]
        return not flags or any(
            value & (flag.value if flag.mask is None else flag.mask) == flag.value for flag in flags
        )


def _with_result(parameters: Sequence[Parameter], c_type: str) -> tuple[Parameter, ...]:
    """Parameters of which the result has another type: what is in the rest of its register nobody knows."""
    return tuple(replace(one, c_type=c_type) if one.index == RESULT else one for one in parameters)


def _variants_with_result(variants: Variants, c_type: str) -> Variants:
    cases = (
        replace(
            case,
            parameters=_with_result(case.parameters, c_type),
            effects=None,
            variants=None if case.variants is None else _variants_with_result(case.variants, c_type),
        )
        for case in variants.cases
    )
    return replace(variants, cases=tuple(cases))


def _chosen(variants: Variants, value: int) -> int:
    """The bits of a value by which a case is chosen; requests and options are numbers of 32 bits."""
    return value & (0xFFFFFFFF if variants.mask is None else variants.mask)


def _at(values: Sequence[int | None], index: int) -> int | None:
    return values[index] if index < len(values) else None
