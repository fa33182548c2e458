"""What is in a trace, as `clew info --json` has it.

Runs in the controller.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from clew.analysis.order.order_gaps import find_order_gaps
from clew.analysis.tables.totals import summarize_trace
from clew.errors import TraceDamagedError
from clew.store.trace import Trace

__all__ = ["describe_trace"]


def describe_trace(trace: Trace) -> dict[str, Any]:
    """Totals, processes with their threads and images, losses; and what of the order was left out.

    Raises TraceDamagedError where a table can't be read; of paths that can't, `order` says so.
    """
    summary = summarize_trace(trace)
    try:
        order = find_order_gaps(trace)
        summary["order"] = None if order is None else asdict(order)
    except TraceDamagedError as error:
        summary["order"] = {"damage": error.message}
    return summary
