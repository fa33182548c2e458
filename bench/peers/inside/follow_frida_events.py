"""Takes the events of a program under frida's Stalker: `follow_frida_events.py KINDS CODE QUEUE SECONDS RESULT
COMMAND ARG...`.

KINDS is `block`, `call,ret` or the like; CODE is how the name of the file begins in which the program's own code is;
QUEUE is `CAPACITY,MILLISECONDS`, how many events there is room for and how often they are taken, or `usual`.

Runs with the Python of build/peers-venv. Events come as the 32 bytes each that Stalker writes, and become numpy arrays.
RESULT gets a JSON object: `n_events`, `n_own`, those that were executed in the program's own code or lead there, the
`seconds` from main() to the last event, `threads`, `status` and `was_cut`, which says that the program was ended after
SECONDS. Exit statuses are those of follow_frida.py.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import frida
import numpy as np

_ENDED_WITHOUT_A_WORD = 70
_SCRIPT_FAILED = 71

# Of a block `address` is the first instruction's, of what else there is the instruction's.
_EVENT = np.dtype(
    {"names": ["kind", "address", "target"], "formats": ["<u4", "<u8", "<u8"], "offsets": [0, 8, 16], "itemsize": 32}
)
_CALL = 1


class _Taker:
    """Takes messages of the script, one after the other."""

    def __init__(self, kinds: str) -> None:
        self._counts_calls = "call" in kinds
        self.n_events = self.n_own = 0
        self.start = self.end = 0.0
        self.told: dict[str, Any] = {}
        self.failures: list[str] = []
        self._low = self._high = 0

    def hear(self, message: dict[str, Any], data: bytes | None) -> None:
        if message["type"] != "send":
            self.failures.append(str(message.get("description", message)))
        elif data is not None:
            self._take(np.frombuffer(data, _EVENT))
        elif "own" in message["payload"]:
            self._low, self._high = (int(word, 16) for word in message["payload"]["own"])
            self.start = self.end = time.perf_counter()
        else:
            self.told = message["payload"]

    def _take(self, events: np.ndarray) -> None:
        self.n_events += len(events)
        if self._counts_calls:
            addresses = events["target"][events["kind"] == _CALL]
        else:
            addresses = events["address"]
        self.n_own += int(np.count_nonzero(addresses - np.uint64(self._low) < self._high - self._low))
        self.end = time.perf_counter()


def _read_queue(words: str) -> dict[str, int] | None:
    if words == "usual":
        return None
    capacity, milliseconds = words.split(",")
    return {"capacity": int(capacity), "drainMilliseconds": int(milliseconds)}


def main(words: list[str]) -> int:
    """Take the events of a command to its end; return the exit status."""
    kinds, code, queue, limit_seconds, result_path, *command = words
    wanted = dict.fromkeys(kinds.split(","), True)
    source = Path(__file__).with_suffix(".js").read_text()
    for word, value in (("KINDS", wanted), ("CODE", code), ("QUEUE", _read_queue(queue))):
        source = source.replace(f"{word}_IN_JSON", json.dumps(value))
    taker = _Taker(kinds)
    ended = threading.Event()

    device = frida.get_local_device()
    pid = device.spawn(command, stdio="inherit")
    session = device.attach(pid)
    session.on("detached", lambda *_: ended.set())
    script = session.create_script(source)

    def hear(message: dict[str, Any], data: bytes | None) -> None:
        taker.hear(message, data)
        if taker.told:
            script.post({"type": "heard"})

    script.on("message", hear)
    script.load()
    device.resume(pid)
    was_cut = not ended.wait(float(limit_seconds))
    if was_cut:
        device.kill(pid)
    if taker.failures:
        print(taker.failures[0], file=sys.stderr)
        return _SCRIPT_FAILED
    if not was_cut and not taker.told:
        print("the program ended without a word from the script", file=sys.stderr)
        return _ENDED_WITHOUT_A_WORD
    found = {"n_events": taker.n_events, "n_own": taker.n_own, "seconds": taker.end - taker.start, "was_cut": was_cut}
    Path(result_path).write_text(json.dumps(found | taker.told))
    return int(taker.told.get("status", 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
