// Runs in the target, loaded by follow_frida.py, which writes the kind over KIND_IN_JSON. Follows every thread, the main
// one from main() on (what runs before is over when frida lets a script in, but for constructors), and tells at _exit
// what was counted. Knows nothing of the benchmark.

const kind = KIND_IN_JSON;
const COUNTERS_PER_THREAD = 1 << 22; // 8 bytes each, of pages that only a use makes real

// A counter in front of each block that Stalker compiles, written into the code: as cheap as frida's interface
// lets it be. `lea` adds without touching the flags; the stack pointer first leaves the red zone.
const counting = `
#include <gum/gumstalker.h>

typedef struct { guint64 used; guint64 limit; guint64 counters[1]; } Area;

void
transform (GumStalkerIterator * iterator, GumStalkerOutput * output, gpointer user_data)
{
  Area * area = user_data;
  const cs_insn * instruction;
  gboolean first = TRUE;

  while (gum_stalker_iterator_next (iterator, &instruction))
  {
    if (first)
    {
      guint64 counter = (guint64) &area->counters[area->used];
      guint8 code[] = {
        0x48, 0x8d, 0x64, 0x24, 0x80,                 /* lea rsp, [rsp - 128] */
        0x50,                                         /* push rax */
        0x48, 0xa1, 0, 0, 0, 0, 0, 0, 0, 0,           /* mov rax, [counter] */
        0x48, 0x8d, 0x40, 0x01,                       /* lea rax, [rax + 1] */
        0x48, 0xa3, 0, 0, 0, 0, 0, 0, 0, 0,           /* mov [counter], rax */
        0x58,                                         /* pop rax */
        0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0         /* lea rsp, [rsp + 128] */
      };
      if (area->used + 1 < area->limit)
        area->used++;
      *(guint64 *) (code + 8) = counter;
      *(guint64 *) (code + 22) = counter;
      gum_x86_writer_put_bytes (output->writer.x86, code, sizeof (code));
      first = FALSE;
    }
    gum_stalker_iterator_keep (iterator);
  }
}
`;

// Kept for as long as the script: a module that is collected takes its code along.
const module = kind === 'counts' ? new CModule(counting) : null;
const areas = [];
let calls = 0;
let threads = 0;

function makeOptions() {
  if (kind === 'counts') {
    const area = Memory.alloc(16 + 8 * COUNTERS_PER_THREAD);
    area.add(8).writeU64(COUNTERS_PER_THREAD);
    areas.push(area);
    return { transform: module.transform, data: area };
  }
  if (kind === 'calls') {
    return {
      events: { call: true },
      onCallSummary(summary) {
        for (const count of Object.values(summary)) calls += count;
      },
    };
  }
  return {};
}

function follow(threadId) {
  threads += 1;
  Stalker.follow(threadId, makeOptions());
}

function countUp() {
  if (kind === 'calls') return calls;
  let total = 0;
  for (const area of areas) {
    const used = area.readU64().toNumber();
    for (let index = 0; index <= used; index++) total += area.add(16 + 8 * index).readU64().toNumber();
  }
  return total;
}

// The address of main, which stripped programs name only in their first instructions, as the argument to libc.
function findMain() {
  const program = Process.mainModule;
  const header = program.base;
  const entry = header.add(24).readU64();
  const isRelocated = header.add(16).readU16() === 3; // ET_DYN
  let pc = isRelocated ? program.base.add(entry) : ptr(entry.toString());
  for (let count = 0; count < 24; count++) {
    const instruction = Instruction.parse(pc);
    const [to, from] = instruction.operands;
    if (from !== undefined && to.type === 'reg' && (to.value === 'rdi' || to.value === 'edi')) {
      if (from.type === 'imm') return ptr(from.value.toString());
      const address = instruction.next.add(from.value.disp);
      return instruction.mnemonic === 'lea' ? address : address.readPointer();
    }
    pc = instruction.next;
  }
  throw new Error('no address of main in the first instructions');
}

const listener = Interceptor.attach(findMain(), {
  onEnter() {
    listener.detach();
    follow(Process.getCurrentThreadId());
    Process.attachThreadObserver({
      onAdded(thread) {
        if (thread.id !== Process.id) follow(thread.id);
      },
    });
  },
});

Interceptor.attach(Process.getModuleByName('libc.so.6').getExportByName('_exit'), {
  onEnter(args) {
    Stalker.flush();
    send({ status: args[0].toInt32() & 255, counted: kind === 'follow' ? null : countUp(), threads });
    recv('heard', () => {}).wait(); // the process would end before the message is out
  },
});
