"""The published JSON schema says what the checker says, as far as a schema can."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import clew.api.reading
from clew.api import shapes
from clew.api.checking import ARCHITECTURES, find_problems
from clew.api.reading import BUILT_IN
from clew.api.vocabulary import (
    DIRECTIONS,
    EFFECTS,
    ERROR_CONVENTIONS,
    FILTERS,
    MAX_ARGUMENTS,
    MAX_STRUCT_BYTES,
    MOMENTS,
    PARAMETER_TYPES,
    RAW_TYPES,
    SIDES,
    TABLE_KINDS,
    WRITTEN,
)
from tests.unit.api.test_checking import GOOD

SCHEMA: dict[str, Any] = json.loads(
    (Path(clew.api.reading.__file__).parent / "schema.json").read_text(encoding="utf-8")
)
PARTS: dict[str, Any] = SCHEMA["$defs"]


def find_part(name: str) -> Any:
    parts = {
        "document": SCHEMA,
        "shares": PARTS["effects"]["items"]["properties"]["Shares"],
        "effect": PARTS["effects"]["items"],
    }
    return parts.get(name) or PARTS[name]


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("document", shapes.DOCUMENT),
        ("flagTable", shapes.FLAG_TABLE),
        ("struct", shapes.STRUCT),
        ("member", shapes.MEMBER),
        ("memberCondition", shapes.MEMBER_CONDITION),
        ("library", shapes.LIBRARY),
        ("function", shapes.FUNCTION),
        ("varargs", shapes.VARARGS),
        ("systemCall", shapes.SYSTEM_CALL),
        ("parameter", shapes.PARAMETER),
        ("condition", shapes.CONDITION),
        ("variants", shapes.VARIANTS),
        ("case", shapes.CASE),
        ("effect", shapes.EFFECT),
        ("shares", shapes.SHARES),
    ],
)
def test_objects_have_the_same_keys(name: str, keys: dict[str, shapes.Key]) -> None:
    part = find_part(name)
    assert set(part["properties"]) == set(keys)
    assert set(part.get("required", ())) == {key for key, one in keys.items() if one.is_needed}
    assert part["additionalProperties"] is False


def test_words_are_the_same() -> None:
    properties = PARTS["parameter"]["properties"]
    assert tuple(PARTS["filter"]["enum"]) == FILTERS
    assert tuple(PARTS["error"]["enum"]) == ERROR_CONVENTIONS
    assert tuple(PARTS["rawType"]["enum"]) == RAW_TYPES
    assert tuple(PARTS["member"]["properties"]["Side"]["enum"]) == SIDES
    assert tuple(properties["Written"]["enum"]) == WRITTEN
    assert PARTS["member"]["properties"]["Size"]["maximum"] == MAX_STRUCT_BYTES
    assert tuple(properties["Type"]["enum"]) == PARAMETER_TYPES
    assert tuple(properties["Direction"]["enum"]) == DIRECTIONS
    assert tuple(properties["When"]["enum"]) == MOMENTS
    assert tuple(PARTS["flagTable"]["properties"]["Kind"]["enum"]) == TABLE_KINDS
    assert tuple(find_part("effect")["properties"]["Effect"]["enum"]) == EFFECTS
    assert set(PARTS["systemCall"]["properties"]["Number"]["propertyNames"]["enum"]) == ARCHITECTURES
    assert PARTS["argument"]["maximum"] == PARTS["parameterIndex"]["maximum"] == MAX_ARGUMENTS - 1
    assert PARTS["case"]["properties"]["Arguments"]["maximum"] == MAX_ARGUMENTS


def test_clews_own_files_keep_to_the_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    validator = jsonschema.Draft202012Validator(SCHEMA)
    for path in BUILT_IN:
        assert list(validator.iter_errors(json.loads(path.read_text(encoding="utf-8")))) == []
    assert list(validator.iter_errors(GOOD)) == []


@pytest.mark.parametrize("junk", [None, True, -2, 2.5, "x", "", [], {}, [[]], {"a": []}, 99])
def test_what_the_schema_refuses_the_checker_refuses(junk: Any) -> None:
    """At each place of a good file: the checker may refuse more, since it knows what depends on more than one place."""
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(SCHEMA)

    def places(value: Any, place: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        return [place] * bool(place) + [one for key, inner in items for one in places(inner, (*place, key))]

    for place in places(GOOD, ()):
        content: Any = copy.deepcopy(GOOD)
        holder = content
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = junk
        assert validator.is_valid(content) or find_problems(content), place


@pytest.mark.parametrize(
    ("place", "junk"),
    [
        (("Sauce",), "x"),
        (("FlagTables", "ways", "Values", 0), ["W_A"]),
        (("FlagTables", "ways", "Values", 0), ["W_A", 1, 3, 4]),
        (("SystemCalls", 0, "Number"), {}),
        (("SystemCalls", 0, "Number"), {"vax": 1}),
        (("SystemCalls", 0, "Parameters", 0, "Index"), 32),
        (("SystemCalls", 0, "Parameters", 0, "RawType"), "integer"),
        (("SystemCalls", 0, "Effects", 0, "Parameters", 0), -2),
        (("Libraries", 0, "Functions", 0, "Number"), {"x86_64": 1}),
    ],
)
def test_the_schema_refuses_what_is_wrong_by_itself(place: tuple[Any, ...], junk: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    content: Any = copy.deepcopy(GOOD)
    holder = content
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = junk
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(content)
    assert find_problems(content)
