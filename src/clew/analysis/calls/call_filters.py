"""By call the word that descriptions choose it by (`Filter`): each name of each library is looked up once.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from clew.analysis.tables.arrays import Array
from clew.api.call_filters import UNKNOWN, CallFilters, built_in_filters
from clew.api.vocabulary import FILTERS
from clew.protocol.words import CALL_WORDS

__all__ = ["find_filters"]

_SMALL: Final = 1 << 22


def find_filters(
    names: Sequence[str],
    libraries: Sequence[str],
    *,
    kind: Array,
    name: Array,
    library: Array | None,
    is_alone: Array,
) -> Array:
    """Indices of FILTERS (u8). `kind`, `name`, `library` and `is_alone` (bool) are those of CallRows, by call."""
    of_library = np.full(len(name), len(libraries)) if library is None else library
    n_names, n_libraries = len(names) + 1, len(libraries) + 1
    n_kinds = len(CALL_WORDS) + 1
    keys = ((is_alone * np.int64(n_kinds) + kind) * n_libraries + of_library) * n_names + name
    n_keys = 2 * n_kinds * n_libraries * n_names
    different: Array
    which: Array
    if n_keys <= _SMALL:
        # Of ten million calls that takes a tenth of the time.
        different = np.flatnonzero(np.bincount(keys, minlength=n_keys))
        place_of = np.zeros(n_keys, np.uint32)
        place_of[different] = np.arange(len(different))
        which = place_of[keys]
    else:
        different, which = np.unique(keys, return_inverse=True)
    words = []
    for key in different.tolist():
        place, own = divmod(key, n_names)
        place, own_library = divmod(place, n_libraries)
        alone, own_kind = divmod(place, n_kinds)
        own_name = names[own] if own < len(names) else ""
        path = libraries[own_library] if own_library < len(libraries) else None
        words.append(_find(built_in_filters(), own_kind, own_name, path, is_alone=bool(alone)))
    found: Array = np.array([FILTERS.index(word) for word in words], np.uint8)[which]
    return found


def _find(filters: CallFilters, kind: int, name: str, library: str | None, *, is_alone: bool) -> str:
    if kind >= len(CALL_WORDS):
        return UNKNOWN
    if CALL_WORDS[kind] == "system_call":
        return filters.of_system_call(name, library)
    return filters.of_function(name, library, is_alone=is_alone)
