"""Runs in the peers' virtual environment: has frida's Interceptor put machine code of C where a function begins, and
ends, in a running process. Knows nothing of the benchmark.

Arguments: the process, the function's address, and `entry` or `both`. Says `ready`, goes on until its input ends, and
says how many calls were noted, in decimal.
"""

from __future__ import annotations

import sys

import frida

# A record is what the other tracers' events are: a time stamp, and which event it is, in a ring that is not emptied.
SCRIPT = """
const module = new CModule(`
#include <gum/guminterceptor.h>
extern guint64 ring[];
extern guint64 count;
typedef struct { guint64 time; guint64 event; } Record;

static void
note (guint64 event)
{
  Record * record = (Record *) ring + (count++ & 0xffff);
  record->time = g_get_monotonic_time ();
  record->event = event;
}

void onEnter (GumInvocationContext * context) { note (1); }
#ifdef BOTH
void onLeave (GumInvocationContext * context) { note (2); }
#endif
`.replace('#ifdef BOTH', KIND === 'both' ? '#if 1' : '#if 0'), {ring: Memory.alloc(1 << 20), count: counter});
Interceptor.attach(ptr(ADDRESS), module);
rpc.exports = { count: () => counter.readU64().toString() };
"""


def main() -> None:
    pid, address, kind = sys.argv[1:]
    session = frida.attach(int(pid))
    given = f"const KIND = '{kind}', ADDRESS = '{address}', counter = Memory.alloc(8);\n"
    script = session.create_script(given + SCRIPT)
    script.load()
    print("ready", flush=True)
    sys.stdin.read()
    print(script.exports_sync.count(), flush=True)
    session.detach()


main()
