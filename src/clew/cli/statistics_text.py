"""The runtimes' own numbers, for people: what `--stats` prints.

Runs in the controller. The names are those of the status page in protocol/schema.toml; docs/statistics.md says what to
conclude from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

__all__ = ["GROUPS", "iter_statistics"]

GROUPS: Final[dict[str, dict[str, str]]] = {
    "translation": {
        "fragments": "pieces of code translated; a forked child has its parent's as well",
        "instructions_translated": "instructions in them",
        "prefetched": "pieces of code translated before they were executed, because a session asked for that",
        "prefetch_refused": "addresses where that could not be done: they hold no code",
        "invalidated": "fragments given up because their code was unmapped or changed",
        "blocks_refused": "blocks whose changes by a transformer could not be taken",
        "relaid": "hot fragments translated again, to lie in the order in which they run",
        "trusted_pages": "pages of code that may be written, protected instead of compared each time",
        "trust_ends": "writes to such pages, after each of which the page is compared again for a while",
    },
    "links": {
        "links": "exits of fragments that lead straight to the next fragment",
        "unlinks": "links taken back, because the code that they led to or came from went or changed",
    },
    "lookups of indirect jumps, calls and returns": {
        "dynamic_edges": "pairs of such a branch and a target, each made known once",
        "table_misses": "lookups that missed a thread's own table; that of all threads had the target",
        "entries_indirect": "lookups that missed both: the dispatcher found the target, and mostly made it known",
    },
    "entries into the dispatcher, by cause": {
        "entries_exit": "an exit without a link, as a rule the first time that it is taken",
        "entries_syscall": "a system call that clew must know of, such as mmap or clone",
        "native_runs": "threads that were no longer followed by their session, and went on natively",
        "native_calls": "system calls of such threads, which all come there",
    },
    "signals": {
        "entries_signal": "signals and faults that came to the program, and clew delivered",
    },
    "code that is not 64-bit code": {
        "excursions": "times that a thread went there by a far branch or a return from a handler",
        "uncounted_instructions": "instructions that it executed there, one by one",
    },
    "memory, added up over processes": {
        "cache_bytes": "translated code",
        "slabs": "pieces of memory that it lies in",
        "heap_bytes": "what the runtime knows of it",
        "counters_used": "counters given out, of 8 bytes in each thread that uses them",
    },
    "records": {
        "calls_forgotten": "calls whose returns were to be captured, and are not",
        "ring_submissions_unseen": "operations of io_uring that were submitted unseen",
        "ring_completions_unseen": "results of io_uring that were overwritten unseen",
        "waits": "times that a thread waited for clew to make room in its ring",
        "thinned": "times that mode auto left the order out from then on",
        "lost_records": "records dropped",
        "lost_threads": "threads refused, because there are too many, or no memory for one",
        "uncounted_fragments": "fragments that no counter was left for",
        "untagged_fragments": "fragments whose executions mode region counts only: no number of a block was left",
        "unanswered": "requests that clew did not answer in time",
    },
    "attaching": {
        "attach_microseconds": "for so long the process was stopped to be attached to",
        "detach_microseconds": "and for so long to be left",
    },
}
"""By what they are about: names of numbers, and what each is the number of."""


def iter_statistics(statistics: Mapping[str, int]) -> Iterator[str]:
    """Lines that tell the numbers group by group: name, number, and what it is. Groups without any are left out."""
    known = {name for names in GROUPS.values() for name in names}
    groups = GROUPS | {"others": dict.fromkeys((name for name in statistics if name not in known), "")}
    name_width = max(map(len, statistics), default=0)
    width = max((len(str(value)) for value in statistics.values()), default=0)
    for title, names in groups.items():
        told = {name: text for name, text in names.items() if name in statistics}
        if told:
            yield f"{title}:"
        for name, text in told.items():
            value = statistics[name]
            size = f" ({_format_bytes(value)})" if name.endswith("_bytes") else ""
            yield f"  {name:<{name_width}}  {value:>{width}}  {text}{size}".rstrip()


def _format_bytes(n_bytes: int) -> str:
    return f"{n_bytes / (1 << 20):,.1f} MiB" if n_bytes >= 1 << 20 else f"{n_bytes / 1024:,.1f} KiB"
