"""Filters told to running targets: the ranges of what they load.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Iterable

from clew.process.linux import PROT_EXEC
from clew.process.maps import Mapping
from clew.process.shared_memory import FilterRow, SharedMemory
from clew.recording.options.filters import CodeMapping, Filter, FilterSet

__all__ = ["LiveFilters"]


class LiveFilters:
    """What `filters` say of mappings, appended to the table of a region."""

    def __init__(self, filters: FilterSet) -> None:
        self._filters = filters
        self.left_out = 0
        """How many ranges found no room in a table."""

    def tell_all(self, shared: SharedMemory, mappings: Iterable[Mapping]) -> None:
        """Tell a region that is new: of addresses, and of everything that is mapped."""
        self._append(shared, self._filters.address_rows())
        self.tell(shared, mappings)

    def tell(self, shared: SharedMemory, mappings: Iterable[Mapping]) -> None:
        """Tell a region of what was mapped."""
        if self._filters.is_active:
            executable = [one for one in mappings if one.protection & PROT_EXEC]
            self._append(shared, [row for one in executable for row in self._rows_for(one)])

    def add(self, item: Filter, is_included: bool) -> None:
        """From now on what `item` holds is recorded or not: the last word of all."""
        self._filters.later.append((item, is_included))

    def change(self, shared: SharedMemory, mappings: Iterable[Mapping]) -> int:
        """Tell a region of what was added last, whose threads must be stopped; in how many pieces of code it holds
        something."""
        item, is_included = self._filters.later[-1]
        shared.ask_about_images()
        if item.addresses is not None:
            rows: list[FilterRow] = [(*item.addresses, is_included)]
        else:
            executable = [CodeMapping.of(one) for one in mappings if one.protection & PROT_EXEC]
            rows = [row for one in executable for row in self._filters.rows_of(item, is_included, one)]
        self._append(shared, rows)
        shared.give_directive()
        return len(rows)

    def _rows_for(self, mapping: Mapping) -> list[FilterRow]:
        return self._filters.rows_for(CodeMapping.of(mapping))

    def _append(self, shared: SharedMemory, rows: list[FilterRow]) -> None:
        self.left_out += len(rows) - shared.append_filters(rows)
