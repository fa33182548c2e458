"""What can be asked of a trace, and who answers it: a table of paths and functions of a request's query.

Runs in the controller. An answer is a container of typed arrays, an object that goes as JSON, or a table as a file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from clew.server.call_answers import (
    answer_call,
    answer_call_places,
    answer_call_summary,
    answer_calls,
    encode_call_chart,
)
from clew.server.call_time_answers import answer_next_call, answer_thread_calls, encode_call_lanes
from clew.server.call_tree_answers import answer_call_tree
from clew.server.code import (
    answer_function_code,
    answer_function_lines,
    answer_listing,
    answer_listing_lines,
    answer_references,
    encode_listing_index,
)
from clew.server.comparison import Comparison
from clew.server.comparison_arrays import encode_compared_blocks, encode_compared_functions, encode_comparison
from clew.server.entity_answers import answer_entities, answer_entity, answer_touches
from clew.server.graph_arrays import encode_blocks, encode_counts, encode_functions, encode_thread_functions
from clew.server.query import Query
from clew.server.replay_answers import (
    answer_events,
    answer_replay,
    answer_seek,
    encode_frames,
    encode_path,
    encode_timeline,
)
from clew.server.search import search
from clew.server.summary import summarize
from clew.server.table_files import TableFile, make_table_file

__all__ = ["ANSWERS", "Answer"]

Answer = Callable[[Query], bytes | dict[str, Any] | TableFile]

_PROCESS: Final = "/processes/{process:index}"
_OTHER: Final = _PROCESS + "/compared/{other:index}/{other_process:index}"
_THREAD: Final = _PROCESS + "/threads/{tid:index}"


def _compare(query: Query) -> Comparison:
    """The comparison that is asked about. Its parts are made when they are needed: nobody waits for them here."""
    a, b = query.served.graph(query.process_id), query.other.graph(query.other_process_id)
    key = ("compared", query.process_id, query.other.index, query.other_process_id)
    return query.served.once(key, lambda: Comparison(a, b))


ANSWERS: Final[dict[str, Answer]] = {
    "": lambda query: summarize(query.served),
    f"{_PROCESS}/functions": lambda query: encode_functions(query.served, query.process_id),
    f"{_PROCESS}/blocks": lambda query: encode_blocks(query.served, query.process_id, query.functions()),
    f"{_PROCESS}/counts": lambda query: encode_counts(
        query.served,
        query.process_id,
        query.threads(),
        has_blocks=query.flag("blocks"),
        has_owners=query.flag("owners"),
    ),
    f"{_PROCESS}/functions/{{function:index}}": lambda query: answer_function_code(
        query.served, query.process_id, int(query.path["function"]), query.threads()
    ),
    f"{_PROCESS}/functions/{{function:index}}/lines": lambda query: answer_function_lines(
        query.served, query.process_id, int(query.path["function"])
    ),
    f"{_PROCESS}/listing-index": lambda query: encode_listing_index(query.served, query.process_id),
    f"{_PROCESS}/listing": lambda query: answer_listing(
        query.served, query.process_id, query.number("start"), query.number("count"), query.threads()
    ),
    f"{_PROCESS}/listing/lines": lambda query: answer_listing_lines(
        query.served, query.process_id, query.number("start"), query.number("count")
    ),
    f"{_PROCESS}/references": lambda query: answer_references(
        query.served, query.process_id, query.number("block"), query.threads()
    ),
    f"{_PROCESS}/thread-functions": lambda query: encode_thread_functions(query.served, query.process_id),
    f"{_PROCESS}/search": lambda query: search(
        query.served, query.process_id, query.word("by"), query.word("query"), query.number("limit", 200)
    ),
    f"{_PROCESS}/timeline": lambda query: encode_timeline(
        query.served,
        query.process_id,
        query.number("from") if "from" in query.words() else None,
        query.number("to") if "to" in query.words() else None,
        query.number("bins", 1000),
        query.threads(),
    ),
    f"{_PROCESS}/events": lambda query: answer_events(
        query.served, query.process_id, query.number("from"), query.number("to"), query.threads()
    ),
    f"{_PROCESS}/calls": answer_calls,
    f"{_PROCESS}/calls/summary": answer_call_summary,
    f"{_PROCESS}/calls/chart": encode_call_chart,
    f"{_PROCESS}/calls/places": answer_call_places,
    f"{_PROCESS}/calls/tree": answer_call_tree,
    f"{_PROCESS}/calls/lanes": encode_call_lanes,
    f"{_PROCESS}/calls/{{call:index}}": answer_call,
    "/calls": answer_calls,
    "/calls/summary": answer_call_summary,
    "/calls/chart": encode_call_chart,
    "/calls/tree": answer_call_tree,
    "/entities": answer_entities,
    "/entities/{entity:index}": answer_entity,
    "/table": make_table_file,
    f"{_PROCESS}/entities": answer_entities,
    f"{_PROCESS}/entities/{{entity:index}}": answer_entity,
    f"{_PROCESS}/touches": answer_touches,
    _OTHER: lambda query: _compare(query).summarize(),
    f"{_OTHER}/functions": lambda query: encode_compared_functions(_compare(query).union),
    f"{_OTHER}/blocks": lambda query: encode_compared_blocks(_compare(query).union),
    f"{_OTHER}/comparison": lambda query: encode_comparison(_compare(query).union),
    f"{_OTHER}/functions/{{function:index}}": lambda query: _compare(query).describe_function(
        int(query.path["function"])
    ),
    f"{_OTHER}/order": lambda query: _compare(query).find_order(
        query.number("partings", 20), query.word("start") or None, query.word("only") or None
    ),
    f"{_PROCESS}/table": make_table_file,
    f"{_THREAD}/replay": lambda query: answer_replay(
        query.served, query.process_id, query.tid, query.number("position", 0)
    ),
    f"{_THREAD}/calls-near": answer_thread_calls,
    f"{_THREAD}/next-call": answer_next_call,
    f"{_THREAD}/seek": lambda query: answer_seek(
        query.served, query.process_id, query.tid, query.words(), query.number("position", 0)
    ),
    f"{_THREAD}/path": lambda query: encode_path(
        query.served, query.process_id, query.tid, query.number("start"), query.number("count")
    ),
    f"{_THREAD}/frames": lambda query: encode_frames(
        query.served,
        query.process_id,
        query.tid,
        query.number("start"),
        query.number("stride"),
        query.number("frames"),
    ),
}
"""What can be asked of a trace, by the path behind its number."""
