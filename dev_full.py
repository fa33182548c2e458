"""Records a program with --mode full, unfolds its path and compares the number of instructions."""
import subprocess, sys, tempfile, time
import numpy as np
import clew.recording.assemble as A
from clew.recording.assemble_paths import build_code, build_streams
from clew.binary.path_codec import PathWalk
from clew.protocol._generated import PATH_WINDOW_BYTES, PATH_EVENT_RECORD
import clew.recording.assemble_records
FOLDER = tempfile.mkdtemp()
captured = []
orig = A.build_tables
def hook(process, fragments, events, images, blocks, edges, first):
    captured.append((process, fragments, blocks))
    return orig(process, fragments, events, images, blocks, edges, first)
A.build_tables = hook
parsed_all = []
orig_parse = A.parse_records
def hook2(records, n):
    p = orig_parse(records, n); parsed_all.append(p); return p
A.parse_records = hook2
sys.argv = ["clew", "record", "-q", "--mode", "full", "-o", FOLDER + "/full.clew", "--", *sys.argv[1:]]
from clew.cli.main import main
try:
    main()
except SystemExit as e:
    print("exit", e.code)
for (process, fragments, blocks), parsed in zip(captured, parsed_all):
    by_id = {int(i): k for k, i in enumerate(fragments.fragment_id)}
    from clew.recording.assemble_paths import _last_instructions
    edges = parsed.dynamic_edges
    ids = {int(i): k for k, i in enumerate(fragments.fragment_id)}
    class B: pass
    symbols = {}
    # last instruction of a fragment
    ends = fragments.end_pc
    def last_of(k):
        for d in range(1, 16):
            pc = int(ends[k]) - d
            if pc >= int(fragments.app_pc[k]) and bool(fragments.starts_instruction(np.array([k]), np.array([pc], np.uint64))[0]):
                return pc
    for e in edges:
        if int(e["symbol"]) != 0xffff and int(e["source_fragment_id"]) in ids:
            symbols[last_of(ids[int(e["source_fragment_id"])]), int(e["target_pc"])] = int(e["symbol"])
    code = build_code(blocks, fragments, symbols)
    for thread in process.threads:
        window = thread.counters.at(np.arange(PATH_WINDOW_BYTES // 8)).astype(np.uint64).tobytes()
        ev = parsed.path_events[parsed.path_events["tid"] == thread.tid]
        streams = build_streams(parsed.path_chunks.get(int(thread.tid), []), ev, window, code)
        walk = PathWalk(code.code, streams)
        t = time.time()
        n = 0; nb = 0
        ins = code.code.blocks["n_instructions"].astype(np.int64)
        last = None
        execs = np.zeros(len(ins), np.int64)
        while True:
            got = walk.walk(1 << 20)
            n += int(ins[got].sum()); nb += len(got)
            execs += np.bincount(got, minlength=len(ins))
            if len(got): last = got[-8:]
            if walk.stop: break
        position, block, n_events = walk.place()
        print("tid", thread.tid, "stop", walk.stop.name, "instructions", n, "blocks", nb, "surprise bytes", len(streams.surprises), "symbols", len(streams.symbols), "events", len(streams.events), "at", n_events, f"{time.time()-t:.2f} s")
        if walk.stop.name != "END":
            print("  last", [hex(int(code.code.blocks["pc"][b])) for b in last], "then", hex(int(code.code.blocks["pc"][block])) if block < len(ins) else block)
            print("  position", position.surprise_bytes, position.decisions, position.symbol_bytes, position.depth)
            if n_events < len(streams.events):
                e = streams.events[n_events]
                print("  next event", e, hex(int(code.code.blocks["pc"][e["block"]])) if e["block"] < len(ins) else "-", )
print(subprocess.run([sys.executable, "-m", "clew", "info", FOLDER + "/full.clew"], capture_output=True, text=True, check=True).stdout[:1500])
