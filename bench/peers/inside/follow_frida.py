"""Runs a program under frida's Stalker: `follow_frida.py follow|counts|calls RESULT COMMAND ARG...`.

Runs with the Python of build/peers-venv. The program has this process's standard streams; its exit status becomes this
one's, as far as it is told: 70 where the program ended without a word, 71 where the script failed. RESULT gets a JSON
object with `counted`, `status` and `threads`. Knows nothing of the benchmark.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import frida

_ENDED_WITHOUT_A_WORD = 70
_SCRIPT_FAILED = 71


def main(words: list[str]) -> int:
    """Follow a command to its end; return the exit status."""
    kind, result_path, *command = words
    source = Path(__file__).with_suffix(".js").read_text().replace("KIND_IN_JSON", json.dumps(kind))
    told: dict[str, Any] = {}
    failures: list[str] = []
    ended = threading.Event()

    device = frida.get_local_device()
    pid = device.spawn(command, stdio="inherit")
    session = device.attach(pid)
    session.on("detached", lambda *_: ended.set())
    script = session.create_script(source)

    def hear(message: dict[str, Any], _: bytes | None) -> None:
        if message["type"] == "send":
            told.update(message["payload"])
            script.post({"type": "heard"})
        else:
            failures.append(str(message.get("description", message)))

    script.on("message", hear)
    script.load()
    device.resume(pid)
    ended.wait()
    if failures:
        print(failures[0], file=sys.stderr)
        return _SCRIPT_FAILED
    if not told.get("threads"):
        print("the program ended without a word from the script", file=sys.stderr)
        return _ENDED_WITHOUT_A_WORD
    Path(result_path).write_text(json.dumps(told))
    return int(told["status"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
