// Runs in the target, loaded by follow_frida_events.py, which writes over KINDS_IN_JSON, CODE_IN_JSON and QUEUE_IN_JSON: the
// events, how the name of the file begins in which the program's own code is, and the queue, null for what frida has.
// Follows every thread, the main one from main() on, and sends events as they are. Knows nothing of the benchmark.

const kinds = KINDS_IN_JSON;
const code = CODE_IN_JSON;
const queue = QUEUE_IN_JSON;

// Each thread has a queue of its own. What comes while it is full is lost. Messages of more than 128 MB, of 2^22 events,
// would not be taken.
if (queue !== null) {
  Stalker.queueCapacity = queue.capacity;
  Stalker.queueDrainInterval = queue.drainMilliseconds;
}

let threads = 0;

function follow(threadId) {
  threads += 1;
  Stalker.follow(threadId, {
    events: kinds,
    onReceive(events) {
      send(null, events);
    },
  });
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
    const own = Process.enumerateModules().find((module) => module.name.startsWith(code));
    send({ own: own === undefined ? ['0', '0'] : [own.base.toString(), own.base.add(own.size).toString()] });
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
    send({ status: args[0].toInt32() & 255, threads });
    recv('heard', () => {}).wait(); // the process would end before the message is out
  },
});
