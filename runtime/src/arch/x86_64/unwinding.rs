//! Walks up the calls that are open in a thread, by tables that the controller has made of what files say of their functions' frames.
//!
//! Runs in the thread that came to a probe, on its own stack. That is the program's, and so is all that is found there: of memory only the
//! page is read by instructions to which the thread has just written, everything else the kernel reads (`probe_memory`); frames have to
//! grow, and there are no more than asked for. The tables lie in memory that is the controller's to change, at any time: whoever has walked
//! while another directory was made the one walks once more.

use super::probe_memory::{PAGE_MASK, WRITTEN_BYTES};
use crate::cpu::sys::number;
use crate::protocol::{
    backtrace_end, unwind_kind, BacktraceHead, UnwindImage, UnwindTable, MAX_UNWIND_IMAGES, UNWIND_BYTES,
};
use crate::sys::calls::syscall;
use clew_pathcodec::call_frames::{SIGNAL_FRAME_POINTER, SIGNAL_PC, SIGNAL_STACK_POINTER};
use clew_pathcodec::frame_rules::{Kind, Rule, Saved};
use core::sync::atomic::{fence, AtomicU64, Ordering};

const WORD_BYTES: u64 = 8;
const PAGE_BYTES: u64 = PAGE_MASK as u64 + 1;
/// What is copied of a stack at a time, at most: the rest of a page, and one behind it.
pub const COPY_BYTES: usize = 2 * PAGE_BYTES as usize;
/// From the rest of a page that is no less the page behind it is not copied.
const MUCH_BYTES: u64 = PAGE_BYTES / 2;
const IMAGE_BYTES: u64 = size_of::<UnwindImage>() as u64;
const TABLE_BYTES: u64 = size_of::<UnwindTable>() as u64;
/// In the state's word: how many entries the directory has.
const COUNT_MASK: u64 = (1 << 15) - 1;
/// Words behind a backtrace's frames where the controller is asked.
pub const N_ASKING: usize = 2;

/// Where the tables are, and the word that says which directory is the one.
static BASE: AtomicU64 = AtomicU64::new(0);
static STATE: AtomicU64 = AtomicU64::new(0);

/// Says where these are, both mapped from now on.
pub fn set_tables(base: u64, state: u64) {
    BASE.store(base, Ordering::Relaxed);
    STATE.store(state, Ordering::Release);
}

/// Where a thread is, or a call goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    pub pc: u64,
    pub stack_pointer: u64,
    pub frame_pointer: u64,
    pub has_frame_pointer: bool,
    /// It was interrupted there, and did not call.
    pub is_place: bool,
}

impl Frame {
    pub fn of_thread(pc: u64, stack_pointer: u64, frame_pointer: u64) -> Frame {
        Frame { pc, stack_pointer, frame_pointer, has_frame_pointer: true, is_place: true }
    }
}

enum Step {
    Caller(Frame),
    Outermost,
    Asks,
}

/// Writes the calls that are open behind `start` to `out`, as a backtrace of `limit` frames has them; how many bytes it has. `process` is
/// the one whose memory it is.
///
/// # Safety
/// `out` has room for `limit` and three words, `copy` for `COPY_BYTES`. The thread has written `WRITTEN_BYTES` below its stack pointer.
pub unsafe fn walk(start: Frame, limit: usize, out: *mut u64, copy: *mut u8, process: u32) -> usize {
    let word = STATE.load(Ordering::Acquire);
    let mut n_frames = 1;
    let (mut end, mut last) = (backtrace_end::ASKS, start);
    // SAFETY: there is room for more.
    unsafe { out.add(1).write(start.pc) };
    for _ in 0..2 {
        if word == 0 {
            break;
        }
        // SAFETY: `set_tables` said that it is mapped; an aligned u64.
        let state = unsafe { AtomicU64::from_ptr(word as *mut u64) };
        let tables = Tables { base: BASE.load(Ordering::Relaxed), state: state.load(Ordering::Acquire) };
        let mut stack = Stack::new(start.stack_pointer, copy, process);
        // SAFETY: the caller's promises.
        let found = unsafe { climb(&tables, &mut stack, start, limit, out) };
        fence(Ordering::Acquire);
        if state.load(Ordering::Relaxed) == tables.state {
            (n_frames, end, last) = found;
            break;
        }
    }
    let head = BacktraceHead {
        end,
        is_place: last.is_place.into(),
        has_frame_pointer: last.has_frame_pointer.into(),
        reserved: 0,
        n_frames: n_frames as u32,
    };
    let mut n_words = 1 + n_frames;
    // SAFETY: as above; any place that is aligned to words is to numbers.
    unsafe {
        out.cast::<BacktraceHead>().write(head);
        if end == backtrace_end::ASKS {
            out.add(n_words).write(last.stack_pointer);
            out.add(n_words + 1).write(last.frame_pointer);
            n_words += N_ASKING;
        }
    }
    n_words * WORD_BYTES as usize
}

/// Writes the frames' addresses behind the head: how many there are, why there are no more, and the last one.
///
/// # Safety
/// `out` has room for `limit` words behind the head, of which the first is written.
unsafe fn climb(tables: &Tables, stack: &mut Stack, start: Frame, limit: usize, out: *mut u64) -> (usize, u8, Frame) {
    let (mut frame, mut n_frames) = (start, 1);
    let mut code = None;
    while n_frames < limit {
        // A return address may be behind the function's last instruction.
        let place = frame.pc.wrapping_sub(u64::from(!frame.is_place));
        let rule = tables.rule(place, &mut code);
        frame = match step(frame, rule, stack) {
            Step::Caller(caller) => caller,
            Step::Outermost => return (n_frames, backtrace_end::OUTERMOST, frame),
            Step::Asks => return (n_frames, backtrace_end::ASKS, frame),
        };
        n_frames += 1;
        // SAFETY: there is room for `limit` of them.
        unsafe { out.add(n_frames).write(frame.pc) };
    }
    (n_frames, backtrace_end::FULL, frame)
}

/// Goes from a frame to its caller's.
fn step(frame: Frame, rule: Rule, stack: &mut Stack) -> Step {
    let Frame { pc, stack_pointer, frame_pointer, has_frame_pointer, .. } = frame;
    let above = match rule.kind() {
        Kind::Stack => stack_pointer.wrapping_add_signed(rule.offset()),
        Kind::Frame | Kind::Stored | Kind::Nothing if !has_frame_pointer => return Step::Asks,
        Kind::Frame => frame_pointer.wrapping_add_signed(rule.offset()),
        Kind::Stored => match stack.word(frame_pointer.wrapping_add_signed(rule.offset())) {
            Some(found) => found,
            None => return Step::Outermost,
        },
        Kind::Nothing => return by_frame_pointer(frame, stack),
        Kind::Stub => {
            let has_pushed = (pc & 15).cast_signed() >= rule.offset();
            stack_pointer.wrapping_add(WORD_BYTES + WORD_BYTES * u64::from(has_pushed))
        }
        Kind::Signal => return behind_signal(stack_pointer, stack),
        Kind::Outermost => return Step::Outermost,
        Kind::Ask => return Step::Asks,
    };
    // A caller's frame is above.
    if above <= stack_pointer {
        return Step::Outermost;
    }
    let Some(return_pc) = stack.word(above.wrapping_sub(WORD_BYTES)).filter(|pc| *pc != 0) else {
        return Step::Outermost;
    };
    let saved = match rule.saved() {
        Saved::Same => Some(frame_pointer).filter(|_| has_frame_pointer),
        Saved::Lost => None,
        Saved::Below(words) => stack.word(above.wrapping_sub(WORD_BYTES * u64::from(words))),
        Saved::There => stack.word(frame_pointer),
    };
    Step::Caller(Frame {
        pc: return_pc,
        stack_pointer: above,
        frame_pointer: saved.unwrap_or(0),
        has_frame_pointer: saved.is_some(),
        is_place: false,
    })
}

/// As code of which nothing is known often has it: the caller's frame pointer, and above it the return address.
fn by_frame_pointer(frame: Frame, stack: &mut Stack) -> Step {
    let at = frame.frame_pointer;
    if at < frame.stack_pointer || at > u64::MAX - 2 * WORD_BYTES {
        return Step::Outermost;
    }
    match (stack.word(at), stack.word(at + WORD_BYTES)) {
        (Some(before), Some(pc)) if pc != 0 => Step::Caller(Frame {
            pc,
            stack_pointer: at + 2 * WORD_BYTES,
            frame_pointer: before,
            has_frame_pointer: true,
            is_place: false,
        }),
        _ => Step::Outermost,
    }
}

/// Where the thread was when a signal came, whose handler is about to return: it may have been on another stack.
fn behind_signal(stack_pointer: u64, stack: &mut Stack) -> Step {
    let mut kept = |offset: i64| stack.word(stack_pointer.wrapping_add_signed(offset));
    match (kept(SIGNAL_FRAME_POINTER), kept(SIGNAL_STACK_POINTER), kept(SIGNAL_PC)) {
        (Some(frame_pointer), Some(stack_pointer), Some(pc)) if pc != 0 => {
            Step::Caller(Frame::of_thread(pc, stack_pointer, frame_pointer))
        }
        _ => Step::Outermost,
    }
}

/// The tables, as one directory has them.
struct Tables {
    base: u64,
    state: u64,
}

/// Code, and where in its table what lies: the rows and buckets are inside of it all.
#[derive(Clone, Copy)]
struct Code {
    image: UnwindImage,
    table: UnwindTable,
    buckets: u64,
    rows: u64,
}

impl Tables {
    /// The rule of the code at an address; `code` is what was looked at last.
    fn rule(&self, pc: u64, code: &mut Option<Code>) -> Rule {
        let is_there = |code: &Code| code.image.start <= pc && pc < code.image.end;
        let found = match code {
            Some(known) if is_there(known) => *known,
            _ => match self.find(pc) {
                Some(found) => {
                    *code = Some(found);
                    found
                }
                None => return Rule::ASK,
            },
        };
        match found.image.kind {
            unwind_kind::TABLE => self.row(&found, pc.wrapping_sub(found.image.base)),
            unwind_kind::NOTHING => Rule::NOTHING,
            _ => Rule::ASK,
        }
    }

    /// The code at an address, if it is known.
    fn find(&self, pc: u64) -> Option<Code> {
        let directory = (self.state & 1) * MAX_UNWIND_IMAGES * IMAGE_BYTES;
        let (mut first, mut end) = (0, (self.state >> 1 & COUNT_MASK).min(MAX_UNWIND_IMAGES));
        while first < end {
            let middle = first.midpoint(end);
            // SAFETY: inside a directory, both of which are mapped; any bytes are an entry.
            let image: UnwindImage = unsafe { self.read(directory + middle * IMAGE_BYTES) };
            if pc < image.start {
                end = middle;
            } else if pc >= image.end {
                first = middle + 1;
            } else {
                return self.code(image);
            }
        }
        None
    }

    /// `None`: its table is none.
    fn code(&self, image: UnwindImage) -> Option<Code> {
        let at = u64::from(image.table);
        if image.kind != unwind_kind::TABLE {
            let table = UnwindTable { first: 0, bucket_log2: 0, n_rows: 0, n_buckets: 0 };
            return Some(Code { image, table, buckets: 0, rows: 0 });
        }
        if !at.is_multiple_of(WORD_BYTES) || at + TABLE_BYTES > UNWIND_BYTES {
            return None;
        }
        // SAFETY: inside; any bytes are one.
        let table: UnwindTable = unsafe { self.read(at) };
        let buckets = at + TABLE_BYTES;
        let rows = (buckets + 4 * (u64::from(table.n_buckets) + 1)).next_multiple_of(WORD_BYTES);
        let is_sound = table.bucket_log2 < 32 && rows + WORD_BYTES * u64::from(table.n_rows) <= UNWIND_BYTES;
        is_sound.then_some(Code { image, table, buckets, rows })
    }

    /// The rule of a place: that of the last row which is not behind it.
    fn row(&self, code: &Code, place: u64) -> Rule {
        let Some(behind) = place.checked_sub(code.table.first.into()) else { return Rule::NOTHING };
        let bucket = behind >> code.table.bucket_log2;
        if bucket >= code.table.n_buckets.into() {
            return Rule::NOTHING;
        }
        // SAFETY: two numbers of the buckets, which are inside.
        let [low, high] =
            unsafe { self.read::<[u32; 2]>(code.buckets + 4 * bucket) }.map(|at| at.min(code.table.n_rows));
        let (mut first, mut end) = (low, high);
        while first < end {
            let middle = first.midpoint(end);
            if self.row_at(code, middle) >> 32 <= place {
                first = middle + 1;
            } else {
                end = middle;
            }
        }
        match first.checked_sub(1) {
            Some(last) => Rule(self.row_at(code, last) as u32),
            None => Rule::NOTHING,
        }
    }

    /// Row `index`, which is one of the table's.
    fn row_at(&self, code: &Code, index: u32) -> u64 {
        // SAFETY: the rows are inside.
        unsafe { self.read(code.rows + WORD_BYTES * u64::from(index)) }
    }

    /// # Safety
    /// All of it is below `UNWIND_BYTES`, and any bytes are a `T`.
    unsafe fn read<T: Copy>(&self, at: u64) -> T {
        // SAFETY: so much is mapped; nothing is believed of what may change meanwhile.
        unsafe { ((self.base + at) as *const T).read_volatile() }
    }
}

/// The program's stacks.
struct Stack {
    /// The stack pointer's page, and how much of it is known to be there.
    page: u64,
    n_known: u64,
    copy: *mut u8,
    copied: u64,
    n_copied: u64,
    process: u32,
}

impl Stack {
    fn new(stack_pointer: u64, copy: *mut u8, process: u32) -> Stack {
        let is_written = stack_pointer & (PAGE_BYTES - 1) >= WRITTEN_BYTES.into();
        let n_known = if is_written { PAGE_BYTES } else { 0 };
        Stack { page: stack_pointer & !(PAGE_BYTES - 1), n_known, copy, copied: 0, n_copied: 0, process }
    }

    #[inline]
    fn word(&mut self, address: u64) -> Option<u64> {
        if address ^ self.page < self.n_known && address.is_multiple_of(WORD_BYTES) {
            // SAFETY: the thread has written to that page, which is its stack's.
            return Some(unsafe { (address as *const u64).read_volatile() });
        }
        self.word_elsewhere(address)
    }

    #[cold]
    #[inline(never)]
    fn word_elsewhere(&mut self, address: u64) -> Option<u64> {
        let is_copied =
            |stack: &Stack| address.checked_sub(stack.copied).is_some_and(|at| at + WORD_BYTES <= stack.n_copied);
        if !is_copied(self) {
            self.copy_from(address);
            if !is_copied(self) {
                return None;
            }
        }
        // SAFETY: so many bytes were copied.
        Some(unsafe { self.copy.add((address - self.copied) as usize).cast::<u64>().read_unaligned() })
    }

    /// Has the kernel copy memory from an address on. What is not there ends it: pages are asked for one by one.
    fn copy_from(&mut self, address: u64) {
        let first = PAGE_BYTES - address % PAGE_BYTES;
        let remote = [address, first, address.wrapping_add(first), PAGE_BYTES];
        let n_pages = if first < MUCH_BYTES { 2 } else { 1 };
        let local = [self.copy as u64, COPY_BYTES as u64];
        let (local, remote) = (local.as_ptr() as u64, remote.as_ptr() as u64);
        // SAFETY: writes no more than there is room for.
        let n = unsafe { syscall(number::PROCESS_VM_READV, [self.process.into(), local, 1, remote, n_pages, 0]) };
        (self.copied, self.n_copied) = (address, u64::try_from(n).unwrap_or(0).min(COPY_BYTES as u64));
    }
}

const _: () = assert!(size_of::<BacktraceHead>() as u64 == WORD_BYTES);
const _: () = assert!(2 * MAX_UNWIND_IMAGES * IMAGE_BYTES < UNWIND_BYTES);
const _: () = assert!(MAX_UNWIND_IMAGES <= COUNT_MASK);

#[cfg(test)]
pub mod tests;
