//! Copying from and to the program's memory, where it may fault: it need not be there any more.
//!
//! Runs on the runtime's stack. The signal handler knows the instruction that may fault and makes it go on behind itself,
//! as a copy that ended early. SIGSEGV and SIGBUS must not be blocked: the kernel would kill.

use crate::context::addresses::AppPc;
use core::arch::asm;
use core::arch::global_asm;
use core::arch::x86_64::{__cpuid, __cpuid_count};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

global_asm!(
    ".pushsection .text.clew_guarded,\"ax\",@progbits",
    // u64 clew_guarded_copy(rdi target, rsi source, rdx size): the bytes that were not copied. Clobbers rcx, rsi, rdi.
    ".globl clew_guarded_copy",
    "clew_guarded_copy:",
    "mov rcx, rdx",
    ".globl clew_guarded_instruction",
    "clew_guarded_instruction:",
    "rep movsb",
    // A fault in the middle leaves the rest in rcx (Intel SDM, REP).
    ".globl clew_guarded_landing",
    "clew_guarded_landing:",
    "mov rax, rcx",
    "ret",
    // u64 clew_guarded_load(rdi source, rsi target): 0 if the word could not be read. One access: `rep movsb` is interrupted
    // between any two bytes.
    ".globl clew_guarded_load",
    "clew_guarded_load:",
    ".globl clew_guarded_load_instruction",
    "clew_guarded_load_instruction:",
    "mov rax, [rdi]",
    "mov [rsi], rax",
    "mov eax, 1",
    "ret",
    // u64 clew_guarded_store(rdi target, rsi value): 0 if the word could not be written. One access.
    ".globl clew_guarded_store",
    "clew_guarded_store:",
    ".globl clew_guarded_store_instruction",
    "clew_guarded_store_instruction:",
    "mov [rdi], rsi",
    "mov eax, 1",
    "ret",
    ".globl clew_guarded_refused",
    "clew_guarded_refused:",
    "xor eax, eax",
    "ret",
    ".popsection",
);

// SAFETY: the assembly above defines them, as they are declared here.
unsafe extern "C" {
    fn clew_guarded_copy(target: *mut u8, source: *const u8, size: usize) -> usize;
    fn clew_guarded_instruction();
    fn clew_guarded_landing();
    fn clew_guarded_load(source: *const u64, target: *mut u64) -> u64;
    fn clew_guarded_load_instruction();
    fn clew_guarded_store(target: *mut u64, value: u64) -> u64;
    fn clew_guarded_store_instruction();
    fn clew_guarded_refused();
}

/// Where a fault at `pc` goes on, if that is a guarded access. Called by the signal handler: reads no memory.
pub fn landing_of(pc: u64) -> Option<u64> {
    let is_at = |label: unsafe extern "C" fn()| pc == label as *const () as u64;
    if is_at(clew_guarded_instruction) {
        return Some(clew_guarded_landing as *const () as u64);
    }
    let is_word = is_at(clew_guarded_load_instruction) || is_at(clew_guarded_store_instruction);
    is_word.then_some(clew_guarded_refused as *const () as u64)
}

/// Whether the kernel enabled protection keys, which make code that only may be executed unreadable.
static HAS_KEYS: AtomicBool = AtomicBool::new(false);

/// Asks the processor. Once, at the start.
pub fn initialize() {
    // CPUID.7.0:ECX.OSPKE
    let has_keys = __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ecx & (1 << 4) != 0;
    HAS_KEYS.store(has_keys, Ordering::Relaxed);
}

/// Copies code from `source` on; how many bytes there were to be had.
pub fn read_code(target: &mut [u8], source: AppPc) -> usize {
    let size = target.len();
    // SAFETY: writes inside `target`; what can't be read there ends the copy.
    let mut left = unsafe { clew_guarded_copy(target.as_mut_ptr(), source.raw() as *const u8, size) };
    if left != 0 && HAS_KEYS.load(Ordering::Relaxed) {
        // Keys hold for reading, not for executing (Intel SDM, protection keys): the processor has no trouble here.
        let done = size - left;
        left -= read_hidden_code(&mut target[done..], source.wrapping_add(done as u64));
    }
    size - left
}

/// As `read_code`, of code of which it is known that keys hide it.
pub fn read_hidden_code(target: &mut [u8], source: AppPc) -> usize {
    let keys = open_keys();
    // SAFETY: writes inside `target`; what can't be read ends the copy.
    let left = unsafe { clew_guarded_copy(target.as_mut_ptr(), source.raw() as *const u8, target.len()) };
    write_keys(keys);
    target.len() - left
}

/// What the kernel gives a signal handler to begin with, of rights of keys (arch/x86/kernel/fpu/core.c, fpu__clear_user_states).
static HANDLERS_KEYS: AtomicU32 = AtomicU32::new(0);

/// Takes note of that, where the runtime's own handler begins.
pub fn note_handlers_keys() {
    if HAS_KEYS.load(Ordering::Relaxed) {
        HANDLERS_KEYS.store(read_keys(), Ordering::Relaxed);
    }
}

/// Gives the thread the rights that a handler begins with.
pub fn take_handlers_keys() {
    if HAS_KEYS.load(Ordering::Relaxed) {
        write_keys(HANDLERS_KEYS.load(Ordering::Relaxed));
    }
}

/// Copies to the program's memory; how many bytes could be written.
///
/// # Safety
/// The program must expect the bytes there: as from the kernel.
pub unsafe fn write_program(target: u64, source: &[u8]) -> usize {
    // SAFETY: the caller promises that the bytes are the program's to lose; what can't be written ends the copy.
    source.len() - unsafe { clew_guarded_copy(target as *mut u8, source.as_ptr(), source.len()) }
}

/// Copies from the program's memory; how many bytes could be read.
pub fn read_program(target: &mut [u8], source: u64) -> usize {
    // SAFETY: writes inside `target`; what can't be read ends the copy.
    target.len() - unsafe { clew_guarded_copy(target.as_mut_ptr(), source as *const u8, target.len()) }
}

/// Reads a word of the program's by one access, as what the kernel may write meanwhile has to be. `None`: it can't be read.
pub fn read_word(source: u64) -> Option<u64> {
    let mut word = 0;
    // SAFETY: writes `word`; what can't be read is refused.
    (unsafe { clew_guarded_load(source as *const u64, &raw mut word) } != 0).then_some(word)
}

/// Writes a word of the program's by one access, as what the kernel may read meanwhile has to be; whether it could.
///
/// # Safety
/// As `write_program`.
pub unsafe fn write_word(target: u64, value: u64) -> bool {
    // SAFETY: the caller promises that the word is the program's to lose; what can't be written is refused.
    unsafe { clew_guarded_store(target as *mut u64, value) != 0 }
}

/// Gives all keys all rights; returns what they had.
fn open_keys() -> u32 {
    let keys = read_keys();
    write_keys(0);
    keys
}

fn read_keys() -> u32 {
    let keys: u32;
    // SAFETY: rdpkru reads the thread's rights of keys; OSPKE is set.
    unsafe { asm!("rdpkru", in("ecx") 0, out("eax") keys, out("edx") _, options(nomem, nostack)) };
    keys
}

fn write_keys(keys: u32) {
    // SAFETY: OSPKE is set; a signal in between finds these rights in its frame and puts them back. Orders memory accesses.
    unsafe { asm!("wrpkru", in("ecx") 0, in("edx") 0, in("eax") keys, options(nostack)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_copied() {
        let source = [1u8, 2, 3, 4, 5, 6, 7];
        let mut target = [0u8; 5];
        assert_eq!(read_code(&mut target, AppPc::from_raw(source.as_ptr() as u64 + 1)), 5);
        assert_eq!(target, [2, 3, 4, 5, 6]);
        // SAFETY: the target is this test's own.
        assert_eq!(unsafe { write_program(target.as_ptr() as u64, &[9, 8]) }, 2);
        assert_eq!(target, [9, 8, 4, 5, 6]);
    }

    #[test]
    fn words_are_read_and_written() {
        let mut word: u64 = 0x55b9_9106_9620;
        let address = &raw mut word as u64;
        assert_eq!(read_word(address), Some(0x55b9_9106_9620));
        // SAFETY: the word is this test's own.
        assert!(unsafe { write_word(address, 7) });
        assert_eq!(read_word(address), Some(7));
    }
}
