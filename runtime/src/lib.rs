//! clew's runtime: what runs inside the traced process.
//!
//! A freestanding dynamic binary translator. It shares the address space with the program it follows, and nothing else:
//! no libc, no registers or memory of the program's where the program could see it. Modules are floors; each may use only
//! those named after it: dispatch > probe > signal, thread > instrument > translate > cache > decode > arch > context > buffer > sys >
//! protocol.

#![cfg_attr(not(test), no_std)]

#[cfg(not(any(test, feature = "made-up")))]
pub mod dispatch;
#[cfg(not(any(test, feature = "made-up")))]
pub mod probe;
#[cfg(not(any(test, feature = "made-up")))]
pub mod signal;
#[cfg(not(any(test, feature = "made-up")))]
pub mod thread;

pub mod arch;
pub mod buffer;
pub mod cache;
pub mod context;
pub mod decode;
pub mod instrument;
#[allow(dead_code)]
pub mod protocol;
pub mod sys;

pub use arch::cpu;

/// Leaves a panic's place on the status page.
#[cfg(not(test))]
pub fn report_panic(code: u32, line: u64, file: u64) {
    // SAFETY: `shared` is set once at the start and only read here.
    let shared = unsafe { instrument::ENGINE.peek() }.shared;
    shared.report_error(code, [line, file, 0, 0]);
}
