"""Results as bench.run writes them, made up: small, with everything that a table or picture must show."""

from __future__ import annotations

from typing import Any


def make_spread(median: float, least: float | None = None, greatest: float | None = None) -> dict[str, float]:
    return {
        "median": median,
        "least": median if least is None else least,
        "greatest": median if greatest is None else greatest,
    }


def make_mode(ratio: float | None = None, failure: str = "", **more: Any) -> dict[str, Any]:
    """What a row says of one tool."""
    found: dict[str, Any] = {"cpu_seconds": make_spread(0.25), "output_right": not failure, **more}
    if ratio is not None:
        found["ratio"] = make_spread(ratio, ratio * 0.9, ratio * 1.2)
    if failure:
        found.update(failure=failure, said="at /home/someone/secret")
    return found


def make_row(name: str, size: str, modes: dict[str, Any]) -> dict[str, Any]:
    command = [f"/usr/bin/{name}", "-9c", "/home/someone/work/text", ":memory:", ".read /home/someone/script.sql"]
    return {
        "name": name,
        "size": size,
        "command": command,
        "native_cpu_seconds": make_spread(0.1),
        "modes": modes,
    }


def make_result() -> dict[str, Any]:
    """Two of clew's modes and three peers, with a crash, a run that was cut off, and one that did less."""
    names = ("counts", "coverage", "callgrind", "qbdi-counts", "frida-calls")
    return {
        "started": "2026-01-02T03-04-05",
        "revision": "abc1234",
        "machine": {"processor": "A & B <fast>", "processors": 2, "kernel": "6.1", "python": "3.11.7", "peers": {}},
        "rounds": 3,
        "peer_rounds": {"short": 1},
        "rows": [
            make_row("true", "start", {name: make_mode() for name in names}),
            make_row(
                "gzip",
                "short",
                {
                    "counts": make_mode(1.5),
                    "coverage": make_mode(1.2),
                    "callgrind": make_mode(17.0, share=1.0),
                    "qbdi-counts": make_mode(failure="> 60", at_least=61.0),
                    "frida-calls": make_mode(4.0, share=0.02),
                },
            ),
            make_row(
                "perl",
                "short",
                {
                    "counts": make_mode(3.0),
                    "coverage": make_mode(2.5),
                    "callgrind": make_mode(120.0, share=1.0),
                    "qbdi-counts": make_mode(failure="SIGSEGV"),
                    "frida-calls": make_mode(30.0, share=0.004),
                },
            ),
        ],
        "geometric_means": {
            "short": {
                "counts": {"mean": 2.12, "programs": 2, "of": 2},
                "coverage": {"mean": 1.73, "programs": 2, "of": 2},
                "callgrind": {"mean": 45.2, "programs": 2, "of": 2, "counts_mean": 2.12},
            }
        },
        "starts": {
            "native": {name: make_spread(1.0) for name in ("first_instruction_ms", "true_wall_ms", "true_cpu_ms")},
            "counts": {name: make_spread(200.0) for name in ("first_instruction_ms", "true_wall_ms", "true_cpu_ms")},
        },
        "translation": [
            {
                "name": "once",
                "instructions_translated": 1_500_000,
                "native_seconds": make_spread(0.005),
                "target_seconds": make_spread(0.4),
                "ns_per_instruction": make_spread(250.0, 200.0, 500.0),
            }
        ],
    }
