//! What is read in files of /proc that tell of this process: their text without the runtime.
//!
//! Runs on the runtime's stack, in the dispatcher, no lock held. The program has the kernel's own file. Its position counts in the
//! text that is shown, so that copies of the descriptor and children share it as natively; the kernel moves it, by reading as many bytes
//! to nowhere. Calls that read come here only while the process has such a file open, as far as is known: a descriptor that is
//! *watched* may lead to one, which the kernel is asked at each read. Not known are those that came by a message.

extern crate alloc;
use super::proc_files::shown_text;
use super::proc_kinds::{shown_by, Kind};
use super::watched::{is_any_watched, is_watched, note_watched, N_SINGLE, WATCHED};
use crate::context::process::Sharing;
use crate::context::ThreadContext;
use crate::cpu::guarded;
use crate::cpu::sys::number;
use crate::dispatch::calls::call_table;
use crate::dispatch::calls::vectors::{read_pieces, MAX_PIECES};
use crate::dispatch::signals::masks;
use crate::instrument::ENGINE;
use crate::sys::calls::{check, program_call, syscall, EFAULT};
use crate::sys::lock::{Guard, Lock};
use crate::sys::proc_records::{read_length, Record};
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

/// A text that was read in part, so that going on costs no more than the kernel's.
struct Begun {
    file: u64,
    kind: Kind,
    /// Where the next read goes on.
    position: usize,
    text: Vec<u8>,
}

const MAX_BEGUN: usize = 8;
static BEGUN: Lock<Vec<Begun>> = Lock::new(Vec::new());

/// For a fork: the child has it as it is then, and gives the lock up.
pub fn hold() -> impl Sized {
    BEGUN.lock()
}

/// # Safety
/// The calling thread's parent held the lock by `hold` as it forked.
pub unsafe fn let_go() {
    // SAFETY: the caller's promise.
    unsafe { BEGUN.give_up() };
}

/// From now on what is read by `file` is looked at.
pub fn watch(file: u64) {
    let was_any = is_any_watched();
    note_watched(file);
    if !was_any {
        call_table::handle_watched(&ENGINE.lock());
    }
}

/// Descriptors from `first` to `last` lead nowhere any more, or elsewhere. A process that shares this one's memory has its own.
fn unwatch(context: &ThreadContext, first: u64, last: u64) {
    if context.process.sharing != Sharing::Thread || !is_any_watched() {
        return;
    }
    for file in first..=last.min(N_SINGLE as u64 - 1) {
        WATCHED[file as usize / 64].fetch_and(!(1 << (file % 64)), Ordering::Relaxed);
    }
    BEGUN.lock().retain(|begun| !(first..=last).contains(&begun.file));
    if !is_any_watched() {
        call_table::handle_watched(&ENGINE.lock());
    }
}

/// Watches what a program was started with, as a shell redirects: nothing else is known of it. Once, at the start, where no filter
/// sees the calls.
pub fn look_at_inherited() {
    const N_USUAL: u64 = 10;
    (0..N_USUAL).filter(|file| shown_by(*file).is_some()).for_each(note_watched);
}

/// dup and its like. `None`: not of a file that is watched, and not made yet.
pub fn duplicate(call: u64, arguments: [u64; 6]) -> Option<i64> {
    const F_DUPFD: u64 = 0;
    const F_DUPFD_CLOEXEC: u64 = 1030;
    let source = if call == number::PIDFD_GETFD { arguments[1] } else { arguments[0] };
    let is_copy = call != number::FCNTL || matches!(arguments[1] & 0xffff_ffff, F_DUPFD | F_DUPFD_CLOEXEC);
    if !is_copy || !is_watched(source) {
        return None;
    }
    // SAFETY: the program's own call.
    let result = unsafe { program_call(call, arguments) };
    if let Ok(file) = check(result) {
        watch(file);
    }
    Some(result)
}

/// Before close or close_range.
pub fn note_closing(context: &ThreadContext, call: u64, arguments: [u64; 6]) {
    let (first, last) = (arguments[0] & 0xffff_ffff, arguments[1] & 0xffff_ffff);
    match call {
        number::CLOSE if is_watched(first) => unwatch(context, first, first),
        // Flags leave them open, or are another table's.
        number::CLOSE_RANGE if arguments[2] == 0 => unwatch(context, first, last),
        _ => {}
    }
}

/// What the file tells; `None`: it is none of those, or not watched.
pub fn kind_of(context: &ThreadContext, file: u64) -> Option<Kind> {
    if !is_watched(file) {
        return None;
    }
    let kind = shown_by(file).filter(|kind| !matches!(kind, Kind::Memory | Kind::OthersMemory));
    if kind.is_none() {
        unwatch(context, file, file);
    }
    kind
}

/// read and its like. `None`: not of such a file, and not made yet.
pub fn read(context: &mut ThreadContext, call: u64, arguments: [u64; 6]) -> Option<i64> {
    let file = arguments[0] & 0xffff_ffff;
    let kind = kind_of(context, file)?;
    let Some(pieces) = pieces_of(context, call, arguments) else {
        // SAFETY: the program's own call, which the kernel refuses for its vector.
        return Some(unsafe { program_call(call, arguments) });
    };
    let moves = match call {
        number::READ | number::READV => true,
        number::PREADV2 => arguments[3] == u64::MAX,
        _ => false,
    };
    let position = if moves { place(file, 0, SEEK_CUR) } else { arguments[3] as i64 };
    let begun = take_text(context, kind, file, usize::try_from(position).ok()?)?;
    let mut lengths = Vec::with_capacity(pieces.len());
    let mut end = begun.position;
    for (_, count) in &pieces {
        // The kernel reads into each piece by itself (fs/read_write.c, do_loop_readv_writev).
        let length = read_length(&begun.text, record_of(kind), end, *count as usize);
        lengths.push(length);
        end += length;
        if length as u64 != *count {
            break;
        }
    }
    let mut made = read_to_nowhere(call, arguments, end - begun.position);
    if made < 0 {
        return Some(made);
    }
    while moves && begun.position as i64 + made < end as i64 {
        // The kernel's own text has its records elsewhere.
        let rest = [file, 0, 0, 0, 0, 0];
        match read_to_nowhere(number::READ, rest, end - begun.position - made as usize) {
            n if n <= 0 => break,
            n => made += n,
        }
    }
    let mut done = 0;
    for ((address, _), length) in pieces.iter().zip(&lengths) {
        let bytes = &begun.text[begun.position + done..][..*length];
        // SAFETY: the program asked for the bytes there.
        let n = masks::with_faults(context, |_| unsafe { guarded::write_program(*address, bytes) });
        done += n;
        if n != *length {
            break;
        }
    }
    if moves && (made as usize != done) {
        place(file, position + done as i64, SEEK_SET);
    }
    let is_fault = done == 0 && end != begun.position;
    keep_text(Begun { position: begun.position + done, ..begun });
    Some(if is_fault { -i64::from(EFAULT) } else { done as i64 })
}

const SEEK_SET: u64 = 0;
const SEEK_CUR: u64 = 1;

/// Moves the file's position; where it is then, or an error.
fn place(file: u64, offset: i64, from: u64) -> i64 {
    // SAFETY: no memory.
    unsafe { syscall(number::LSEEK, [file, offset as u64, from, 0, 0, 0]) }
}

fn record_of(kind: Kind) -> Record {
    match kind {
        Kind::Mappings | Kind::Addresses => Record::Line,
        Kind::Details => Record::Mapping,
        Kind::Status | Kind::Numbers | Kind::OthersStatus | Kind::OthersNumbers | Kind::Memory | Kind::OthersMemory => {
            Record::Text
        }
    }
}

/// The addresses and sizes that a call reads to; `None` where the kernel refuses its vector, or its flags.
fn pieces_of(context: &mut ThreadContext, call: u64, arguments: [u64; 6]) -> Option<Vec<(u64, u64)>> {
    const MAX_BYTES: u64 = 0x7fff_f000;
    if matches!(call, number::READ | number::PREAD64) {
        return (arguments[2] as i64 >= 0).then(|| alloc::vec![(arguments[1], arguments[2].min(MAX_BYTES))]);
    }
    if arguments[2] > MAX_PIECES || (call == number::PREADV2 && arguments[5] != 0) {
        return None;
    }
    let pieces = read_pieces(context, arguments[1], arguments[2]);
    let is_whole = pieces.len() as u64 == arguments[2];
    (is_whole && pieces.iter().all(|(_, count)| (*count as i64) >= 0)).then_some(pieces)
}

/// Makes the program's call with `count` bytes to nowhere: the kernel, and filters, say whether it may, and move the position.
fn read_to_nowhere(call: u64, arguments: [u64; 6], count: usize) -> i64 {
    let mut bytes: Vec<u8> = alloc::vec![0; count];
    let [file, _, _, position, high, flags] = arguments;
    let piece = [bytes.as_mut_ptr() as u64, count as u64];
    let given = match call {
        number::READ | number::PREAD64 => [file, piece[0], piece[1], position, high, flags],
        _ => [file, piece.as_ptr() as u64, 1, position, high, flags],
    };
    // SAFETY: writes at most the bytes.
    unsafe { program_call(call, given) }
}

/// The file's text from `position` on, as it was when reading began if that got so far.
fn take_text(context: &ThreadContext, kind: Kind, file: u64, position: usize) -> Option<Begun> {
    if position != 0 {
        let mut all: Guard<Vec<Begun>> = BEGUN.lock();
        let is_it = |begun: &Begun| begun.file == file && begun.kind == kind && begun.position == position;
        if let Some(index) = all.iter().position(is_it) {
            return Some(all.swap_remove(index));
        }
    }
    let text = shown_text(context, kind, file)?;
    Some(Begun { file, kind, position: position.min(text.len()), text })
}

fn keep_text(begun: Begun) {
    let mut all = BEGUN.lock();
    all.retain(|other| other.file != begun.file);
    if all.len() == MAX_BEGUN {
        all.remove(0);
    }
    all.push(begun);
}
