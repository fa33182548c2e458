//! What is captured of operations that the program submits to a ring of io_uring, as if each were a system call.
//!
//! Submissions are read as io_uring_enter begins, before the kernel takes them. Results are read whenever a thread of the process makes a
//! system call that is captured, and when it has returned: the program may take them without any call. What the form of an operation takes
//! for registers are the words of its entry (instrument/captures/ring.rs). The program's memory is read while no lock is held.

extern crate alloc;
use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::context::process::Sharing;
use crate::context::ThreadContext;
use crate::cpu::guarded;
use crate::cpu::sys::clock::ticks;
use crate::cpu::sys::number;
use crate::dispatch::proc::proc_kinds::path_of;
use crate::instrument::captures::evaluate::{evaluate, Asked, Value};
use crate::instrument::captures::layout::Action;
use crate::instrument::captures::open_calls::OpenCall;
use crate::instrument::captures::places::Place;
use crate::instrument::captures::ring::{word, Completion, OpenOperation, Submission, Unseen, Words};
use crate::instrument::captures::ring_layout::{Layout, PARAMS_BYTES, SETUP_REGISTERED_FD_ONLY};
use crate::instrument::captures::rings::Name;
use crate::instrument::captures::taken::{kept_of, Taken};
use crate::instrument::captures::taken_records::{record, Heading};
use crate::instrument::captures::text_cells::KeptText;
use crate::instrument::{Engine, ENGINE};
use crate::protocol::{capture_context, MAX_KEPT_VALUES, PAGE_BYTES, RING_OPERATIONS};
use crate::sys::calls::{getpid, monotonic_ns, syscall};
use crate::sys::kernel::MAP_ANONYMOUS;
use crate::thread::captured_calls::to_ns;
use crate::thread::left_calls::Left;
use crate::thread::registry::writer_of;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

/// Whether the process has, or had, a ring.
static ARE_ANY: AtomicBool = AtomicBool::new(false);

/// The system calls that make, name and enter rings; the others that are of importance come to the dispatcher anyway.
pub const HANDLED: &[u64] = &[number::IO_URING_SETUP, number::IO_URING_ENTER, number::IO_URING_REGISTER];

const ENTER_REGISTERED_RING: u64 = 1 << 4;
const REGISTER_RING_FDS: u64 = 20;
const REGISTER_RESIZE_RINGS: u64 = 33;
const REGISTER_USES_REGISTERED: u64 = 1 << 31;
/// So many rings a thread registers at most (IO_RINGFD_REG_MAX), and the bytes of each struct io_uring_rsrc_update.
const MAX_REGISTERED: u64 = 16;
const UPDATE_BYTES: usize = 16;
const KCMP_FILE: u64 = 0;
/// What the links of rings' descriptors lead to ends so.
const RING_LINK: &[u8] = b"[io_uring]";

fn read(address: u64, target: &mut [u8]) -> usize {
    guarded::read_program(target, address)
}

/// The thread is about to make a system call.
pub fn begin(writer: &RingWriter) {
    if ARE_ANY.load(Ordering::Relaxed) {
        look(writer);
    }
}

/// The process ends, or is about to execute another program, which the kernel ends all operations for, or did not do that.
pub fn end_process(context: &ThreadContext, writer: &RingWriter, how: Left) {
    // Others have the memory, and go on.
    if !ARE_ANY.load(Ordering::Relaxed) || context.process.sharing != Sharing::Thread {
        return;
    }
    let ended = {
        let mut engine = ENGINE.lock();
        let rings = &mut engine.captures.rings;
        if how == Left::Over {
            rings.give_up()
        } else {
            rings.all_open()
        }
    };
    tell_left(writer, ended, how);
}

/// A system call has returned.
pub fn end(context: &ThreadContext, number: u64) {
    if !ARE_ANY.load(Ordering::Relaxed) && !HANDLED.contains(&number) {
        return;
    }
    let (arguments, result) = (context.registers.call_arguments(), context.registers.result().cast_signed());
    let writer = &writer_of(context, ENGINE.lock().shared);
    if number == number::IO_URING_SETUP && result >= 0 {
        set_up(context, writer, arguments[1], result as u32);
    }
    if number == number::IO_URING_ENTER {
        let name = entered(context, arguments);
        let is_counted = {
            let mut engine = ENGINE.lock();
            !engine.captures.rings.end(name, context.tid, &read) && engine.captures.takes_rings()
        };
        if is_counted && result > 0 {
            // As of a ring that was made before anybody looked.
            count(writer, Unseen { submissions: result.cast_unsigned(), completions: 0 });
        }
    }
    if result >= 0 {
        note_change(context, writer, number, arguments, result.cast_unsigned());
    }
    if number == number::IO_URING_ENTER {
        look(writer);
    }
}

/// What a call that succeeded has done to rings.
fn note_change(context: &ThreadContext, writer: &RingWriter, number: u64, arguments: [u64; 6], result: u64) {
    let pages = |start: u64, size: u64| start..start.saturating_add(size).next_multiple_of(PAGE_BYTES);
    match number {
        number::MMAP => {
            let [_, size, _, flags, descriptor, offset] = arguments;
            forget(writer, &pages(result, size));
            if flags & MAP_ANONYMOUS == 0 {
                if !path_of(descriptor & 0xffff_ffff).ends_with(RING_LINK) {
                    return;
                }
                let mut engine = ENGINE.lock();
                find_alias(&mut engine, Name::Descriptor(descriptor as u32));
                engine.captures.rings.map(descriptor as u32, offset, pages(result, size));
            }
        }
        number::MUNMAP => forget(writer, &pages(arguments[0], arguments[1])),
        number::MREMAP => forget(writer, &pages(arguments[0], arguments[1])),
        number::IO_URING_REGISTER if arguments[1] & !REGISTER_USES_REGISTERED == REGISTER_RESIZE_RINGS => {
            let name = match arguments[1] & REGISTER_USES_REGISTERED {
                0 => Name::Descriptor(arguments[0] as u32),
                _ => Name::Registered { tid: context.tid, index: arguments[0] as u32 },
            };
            let mut params = [0; PARAMS_BYTES];
            if read(arguments[2], &mut params) == params.len() {
                if let Some(layout) = Layout::of(&params) {
                    let mut engine = ENGINE.lock();
                    find_alias(&mut engine, name);
                    engine.captures.rings.resize(name, layout);
                }
            }
        }
        number::IO_URING_REGISTER if arguments[1] & !REGISTER_USES_REGISTERED == REGISTER_RING_FDS => {
            for index in 0..arguments[3].min(MAX_REGISTERED) {
                let mut update = [0; UPDATE_BYTES];
                let at = arguments[2].wrapping_add(index * UPDATE_BYTES as u64);
                if read(at, &mut update) == update.len() {
                    let part = |at: usize| u32::from_le_bytes(core::array::from_fn(|one| update[at + one]));
                    let mut engine = ENGINE.lock();
                    find_alias(&mut engine, Name::Descriptor(part(8)));
                    let more = Name::Registered { tid: context.tid, index: part(0) };
                    engine.captures.rings.name(Name::Descriptor(part(8)), more);
                }
            }
        }
        _ => {}
    }
}

/// Memory is no longer what it was.
fn forget(writer: &RingWriter, memory: &Range<u64>) {
    let ended = ENGINE.lock().captures.rings.unmap(memory);
    tell(writer, ended);
}

/// A ring was made.
fn set_up(context: &ThreadContext, writer: &RingWriter, params: u64, descriptor: u32) {
    let mut bytes = [0; PARAMS_BYTES];
    if read(params, &mut bytes) < bytes.len() || !ENGINE.lock().captures.takes_rings() {
        return;
    }
    let Some(layout) = Layout::of(&bytes) else { return };
    let flags = u32::from_le_bytes(core::array::from_fn(|index| bytes[8 + index]));
    let name = match flags & SETUP_REGISTERED_FD_ONLY {
        0 => Name::Descriptor(descriptor),
        _ => Name::Registered { tid: context.tid, index: descriptor },
    };
    let ended = ENGINE.lock().captures.rings.add(name, layout);
    ARE_ANY.store(true, Ordering::Relaxed);
    tell(writer, ended);
}

/// Which ring io_uring_enter is about.
fn entered(context: &ThreadContext, arguments: [u64; 6]) -> Name {
    match arguments[3] & ENTER_REGISTERED_RING {
        0 => Name::Descriptor(arguments[0] as u32),
        _ => Name::Registered { tid: context.tid, index: arguments[0] as u32 },
    }
}

/// Finds out whether a descriptor that nobody knows is another one of a ring that is known.
fn find_alias(engine: &mut Engine, name: Name) {
    let Name::Descriptor(descriptor) = name else { return };
    if engine.captures.rings.knows(name) {
        return;
    }
    let pid = u64::from(getpid());
    let is_same = |known: u32| {
        let arguments = [pid, pid, KCMP_FILE, known.into(), descriptor.into(), 0];
        // SAFETY: it compares two descriptors, and touches no memory.
        unsafe { syscall(number::KCMP, arguments) == 0 }
    };
    let found = engine.captures.rings.descriptors().find(|known| is_same(*known));
    if let Some(known) = found {
        engine.captures.rings.name(Name::Descriptor(known), name);
    }
}

/// The descriptor of a ring; of one that a thread registered there may be none any more.
fn descriptor_of(engine: &Engine, name: Name) -> Option<u32> {
    match name {
        Name::Descriptor(descriptor) => Some(descriptor),
        Name::Registered { .. } => {
            let known = engine.captures.rings.descriptor_of(name);
            known.filter(|descriptor| path_of(u64::from(*descriptor)).ends_with(RING_LINK))
        }
    }
}

/// Has all operations open that the thread is about to submit by the call at `pc`, if it does.
pub fn submit(context: &ThreadContext, writer: &RingWriter, number: u64, pc: AppPc) {
    if number != number::IO_URING_ENTER {
        return;
    }
    let arguments = context.registers.call_arguments();
    let (name, most) = (entered(context, arguments), arguments[1] as u32);
    let mut unseen = Unseen::default();
    let submissions = {
        let mut engine = ENGINE.lock();
        find_alias(&mut engine, name);
        let descriptor = descriptor_of(&engine, name);
        engine.captures.rings.begin((name, descriptor), context.tid, most, &read, &mut unseen)
    };
    count(writer, unseen);
    for one in &submissions {
        open(context, writer, one, pc);
    }
}

fn open(context: &ThreadContext, writer: &RingWriter, submission: &Submission, pc: AppPc) {
    let opcode = submission.words[word::ENTRY].unwrap_or_default() as u8;
    let place = ENGINE.lock().captures.at_call(RING_OPERATIONS + u64::from(opcode)).cloned();
    let mut call = OpenCall::default();
    (call.head.function, call.head.tsc) = (pc.raw(), ticks());
    let mut texts: Vec<KeptText> = Vec::new();
    let entry = Entry { words: submission.words, tid: context.tid, call: None, texts: &[] };
    for (kind, program) in place.iter().flat_map(|place| place.opening()) {
        let is_wanted = evaluate(program, &entry, |field, value| match value {
            _ if field >= MAX_KEPT_VALUES as usize => {}
            Value::Missing => call.head.missing |= 1 << field,
            Value::Number(number) => call.values[field] = *number,
            Value::Bytes(bytes) => {
                call.values[field] = bytes.len() as u64;
                texts.push((field, bytes.clone()));
            }
        });
        call.head.kind = if is_wanted { kind } else { 0 };
    }
    let operation = OpenOperation { tid: context.tid, call, texts: Arc::new(texts) };
    if !ENGINE.lock().captures.rings.open(submission, operation) {
        count(writer, Unseen { submissions: 1, completions: 0 });
    }
}

/// Tells the results that came since somebody looked last.
fn look(writer: &RingWriter) {
    let mut unseen = Unseen::default();
    let found = ENGINE.lock().captures.rings.completions(&read, &mut unseen);
    count(writer, unseen);
    tell(writer, found);
}

fn count(writer: &RingWriter, unseen: Unseen) {
    if unseen != Unseen::default() {
        writer.shared.add(crate::status_field!(ring_submissions_unseen), unseen.submissions);
        writer.shared.add(crate::status_field!(ring_completions_unseen), unseen.completions);
    }
}

/// Writes what is captured of operations that have a result, or will have none.
fn tell(writer: &RingWriter, completions: Vec<Completion>) {
    tell_left(writer, completions, Left::Over);
}

/// The same, where those without a result may go on.
fn tell_left(writer: &RingWriter, completions: Vec<Completion>, how: Left) {
    for one in completions.iter().filter(|one| one.operation.call.kind != 0) {
        let OpenOperation { tid, call, texts } = &one.operation;
        let place = ENGINE.lock().captures.returned_place(call.kind).cloned();
        let entry = Entry { words: one.words, tid: *tid, call: Some(call), texts };
        for program in place.iter().flat_map(|place: &Arc<Place>| &place.programs) {
            let mut taken = Taken::default();
            if taken.evaluate(program, &entry) && program.action == Action::Record {
                let left = if one.words[word::RES].is_none() { how.bits() } else { 0 };
                let pc = AppPc::from_raw(call.function);
                record(writer, &Heading { tid: *tid, pc, tsc: ticks(), number: program.number | left }, &taken);
            }
        }
    }
}

/// This is a child's process now.
pub fn begin_child(engine: &mut Engine) {
    if !engine.captures.rings.is_empty() {
        engine.captures.rings.begin_child(&read);
    }
}

/// An operation as it is submitted, or, with its `call`, as it has a result.
struct Entry<'e> {
    words: Words,
    tid: u32,
    call: Option<&'e OpenCall>,
    texts: &'e [KeptText],
}

impl Asked for Entry<'_> {
    fn register(&self, number: u64) -> Option<u64> {
        self.words.get(number as usize).copied().flatten()
    }

    fn read(&self, address: u64, target: &mut [u8]) -> usize {
        read(address, target)
    }

    fn context(&self, what: u8) -> Value {
        match what {
            capture_context::TID => Value::Number(self.tid.into()),
            capture_context::PID => Value::Number(getpid().into()),
            capture_context::TIME => Value::Number(monotonic_ns()),
            capture_context::DURATION => {
                self.call.map_or(Value::Missing, |call| Value::Number(to_ns(ticks().saturating_sub(call.tsc))))
            }
            capture_context::BEGAN => self.call.map_or(Value::Missing, |call| Value::Number(call.tsc)),
            _ => Value::Missing,
        }
    }

    /// Nothing is injected into operations, which alone asks for it.
    fn descriptor_path(&self, _: i32, _: usize) -> Value {
        Value::Missing
    }

    fn kept(&self, field: usize, is_text: bool) -> Value {
        self.call.map_or(Value::Missing, |call| kept_of(call, self.texts, field, is_text))
    }
}
