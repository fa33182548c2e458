//! What the program reads in files of /proc that tell of this process: the kernel's text without the runtime.

extern crate alloc;
use super::proc_kinds::Kind;
use super::proc_states;
use crate::context::addresses::AppPc;
use crate::context::ThreadContext;
use crate::cpu::sys::number;
use crate::dispatch::life::hidden;
use crate::instrument::ENGINE;
use crate::signal::table::table_of;
use crate::sys::calls::{check, syscall};
use crate::sys::kernel::{N_SIGNALS, SIG_DFL, SIG_IGN};
use crate::sys::proc_text;
use crate::thread::registry::writer_of;
use crate::thread::THREADS;
use alloc::vec::Vec;

/// What the program is to read in a file of this kind, whole; `None` if it can't be read. The file's position stays.
pub fn shown_text(context: &ThreadContext, kind: Kind, file: u64) -> Option<Vec<u8>> {
    let text = read_all(context, kind, file)?;
    if text.is_empty() {
        // Of memory that is gone: the program's before an execve.
        return Some(text);
    }
    Some(match kind {
        Kind::Mappings => {
            proc_text::with_reserved(&proc_text::without_mappings(&text, &hidden::ranges()), &hidden::fixed())
        }
        Kind::Details => proc_text::without_mappings(&text, &hidden::ranges()),
        Kind::Addresses => proc_text::without_addresses(&text, &hidden::ranges()),
        Kind::Status => {
            let (ignored, caught) = dispositions(context);
            let tid = proc_text::thread_of(&text);
            proc_states::as_program(file, proc_text::with_signals(&text, hidden_block(tid), ignored, caught))
        }
        Kind::Numbers => {
            let (ignored, caught) = dispositions(context);
            let tid = proc_text::thread_of_numbers(&text);
            proc_states::as_program(file, proc_text::with_signal_numbers(&text, hidden_block(tid), ignored, caught))
        }
        Kind::OthersStatus | Kind::OthersNumbers => proc_states::as_program(file, text),
        Kind::Memory | Kind::OthersMemory => return None,
    })
}

/// The program can write to its code although it may not: whether code changed is asked each time it is entered, from now on.
pub fn distrust_code(context: &ThreadContext) {
    let mut engine = ENGINE.lock();
    let writer = writer_of(context, engine.shared);
    engine.distrust(&writer);
}

/// Mappings are as the program made them until code is trusted again.
pub fn show_mappings_as_made(context: &ThreadContext) {
    let mut engine = ENGINE.lock();
    let writer = writer_of(context, engine.shared);
    engine.end_trust(&writer, AppPc::LOWEST, AppPc::HIGHEST, false);
}

/// What the file says; `None` if it can't be read. Its position stays.
fn read_all(context: &ThreadContext, kind: Kind, file: u64) -> Option<Vec<u8>> {
    const STEP: usize = 0x4000;
    let mut text = Vec::new();
    if matches!(kind, Kind::Mappings | Kind::Details | Kind::Addresses) {
        show_mappings_as_made(context);
    }
    loop {
        let length = text.len();
        text.resize(length + STEP, 0);
        let call = [file, text[length..].as_mut_ptr() as u64, STEP as u64, length as u64, 0, 0];
        // SAFETY: writes at most `STEP` bytes behind what is there.
        let n = check(unsafe { syscall(number::PREAD64, call) }).ok()?;
        text.truncate(length + n as usize);
        if n == 0 {
            return Some(text);
        }
    }
}

/// What thread `tid` blocks besides what the kernel knows, as a mask.
fn hidden_block(tid: Option<u32>) -> u64 {
    let threads = THREADS.lock();
    // SAFETY: the contexts of used places are mapped; their threads write these fields, and either value is right.
    let mut contexts = threads.contexts().map(|context| unsafe { &*context });
    contexts.find(|context| Some(context.tid) == tid).map_or(0, |context| context.program_mask(0))
}

/// As masks: which signals the program ignores, and for which it has handlers.
fn dispositions(context: &ThreadContext) -> (u64, u64) {
    let table = table_of(context).lock();
    let mut masks = (0, 0);
    for signal in 1..=N_SIGNALS as u32 {
        let bit = 1 << (signal - 1);
        match table.action(signal).handler {
            SIG_DFL => {}
            SIG_IGN => masks.0 |= bit,
            _ => masks.1 |= bit,
        }
    }
    masks
}
