"""What probes are wanted, as one session tells another: by numbers and texts alone.

Runs in the controller. Pure. What is told is not believed.
"""

from __future__ import annotations

from typing import Any, Final

from clew.address import MAX_PID, Pid
from clew.errors import UsageError
from clew.protocol._constants import Change
from clew.sessions.aggregate_table import AggregateWish
from clew.sessions.probes.asked import check_spec
from clew.sessions.probes.backends import BackendChoice, parse_native_backend
from clew.sessions.probes.specs import ContextField, PlaceChange, ProbeSpec, Trigger, TriggerAction

__all__ = ["choice_from_json", "choice_to_json", "spec_from_json", "spec_to_json"]

_MAX_FIELDS: Final = 1024
_MAX_NUMBER: Final = 1 << 32


def choice_to_json(choice: BackendChoice) -> dict[str, Any]:
    """By which techniques, as it is told."""
    return {"backend": choice.backend.value, "requires_jump": choice.requires_jump}


def choice_from_json(told: Any) -> BackendChoice:
    """What somebody told. Raises UsageError."""
    told = _object(told)
    return parse_native_backend(_text(told["backend"]), "jump" if _flag(told["requires_jump"]) else None)


def spec_to_json(spec: ProbeSpec) -> dict[str, Any]:
    """A probe, as it is told."""
    return {
        "name": spec.name,
        "where": spec.where,
        "is_function": spec.is_function,
        "fields": [_field_to_json(one) for one in spec.fields],
        "return_fields": [_field_to_json(one) for one in spec.return_fields],
        "condition": spec.condition,
        "with_inlined": spec.with_inlined,
        "wish": None if spec.wish is None else _wish_to_json(spec.wish),
        "consequence": _consequence_to_json(spec.consequence),
        "at_return": spec.at_return,
        "pid": spec.pid,
        "path": spec.path,
    }


def spec_from_json(told: Any) -> ProbeSpec:
    """What somebody told. Raises UsageError, CaptureError."""
    try:
        told = _object(told)
        spec = ProbeSpec(
            _text(told["name"]),
            _text(told["where"]),
            _flag(told["is_function"]),
            tuple(_field_from_json(one) for one in _list(told["fields"])),
            tuple(_field_from_json(one) for one in _list(told["return_fields"])),
            _text_or_none(told["condition"]),
            _flag(told["with_inlined"]),
            _wish_from_json(told["wish"]),
            _consequence_from_json(told["consequence"]),
            _flag(told["at_return"]),
            None if told["pid"] is None else Pid(_number(told["pid"], MAX_PID)),
            _text(told["path"]),
        )
    except (KeyError, ValueError) as error:
        raise UsageError("a probe is told by what it does not have") from error
    check_spec(spec)
    _ = spec.location
    return spec


def _field_to_json(field: ContextField) -> list[Any]:
    return [field.name, field.text, field.is_address, field.backtrace, field.is_registers, field.better]


def _field_from_json(told: Any) -> ContextField:
    name, text, is_address, backtrace, is_registers, better = _list(told)
    return ContextField(
        _text(name), _text(text), _flag(is_address), _number(backtrace, _MAX_FIELDS), _flag(is_registers), _text(better)
    )


def _wish_to_json(wish: AggregateWish) -> list[Any]:
    return [list(wish.by), wish.value, wish.condition, wish.max_keys, wish.has_histogram]


def _wish_from_json(told: Any) -> AggregateWish | None:
    if told is None:
        return None
    by, value, condition, max_keys, has_histogram = _list(told)
    return AggregateWish(
        [_text(one) for one in _list(by)],
        _text_or_none(value),
        _text_or_none(condition),
        _number(max_keys, _MAX_NUMBER),
        _flag(has_histogram),
    )


def _consequence_to_json(consequence: Trigger | PlaceChange | None) -> list[Any] | None:
    if isinstance(consequence, Trigger):
        return ["trigger", consequence.action.value, consequence.signal]
    if isinstance(consequence, PlaceChange):
        return ["change", int(consequence.kind), consequence.where, consequence.value]
    return None


def _consequence_from_json(told: Any) -> Trigger | PlaceChange | None:
    if told is None:
        return None
    what, *rest = _list(told)
    if what == "trigger":
        action, number = rest
        return Trigger(TriggerAction(_text(action)), _number(number, _MAX_FIELDS))
    kind, where, value = rest
    return PlaceChange(Change(_number(kind, _MAX_FIELDS)), _text(where), _text(value))


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError("an object was expected")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list) or len(value) > _MAX_FIELDS:
        raise UsageError(f"a list of at most {_MAX_FIELDS} was expected")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError("a text was expected")
    return value


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError("true or false was expected")
    return value


def _number(value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise UsageError(f"a number up to {most} was expected")
    return value
