//! What captures ask about a thread that has come to a probe.

extern crate alloc;
use crate::context::ThreadContext;
use crate::cpu::sys::number;
use crate::cpu::thread_pointer;
use crate::instrument::captures::evaluate::{Asked, Value};
use crate::protocol::capture_context;
use crate::sys::calls::{getpid, monotonic_ns, syscall};
use crate::thread::registry::thread_name;

/// The calling thread: its registers are in its context.
pub struct Probed<'t> {
    pub context: &'t ThreadContext,
}

impl Asked for Probed<'_> {
    fn register(&self, number: u64) -> Option<u64> {
        self.context.registers.held_register(number)
    }

    /// By the kernel: pages may be missing, or not be there yet, and no handler of faults is the runtime's.
    fn read(&self, address: u64, target: &mut [u8]) -> usize {
        let local = [target.as_mut_ptr() as u64, target.len() as u64];
        let remote = [address, target.len() as u64];
        let arguments = [u64::from(getpid()), local.as_ptr() as u64, 1, remote.as_ptr() as u64, 1, 0];
        // SAFETY: writes no more than the target holds.
        let n = unsafe { syscall(number::PROCESS_VM_READV, arguments) };
        usize::try_from(n).unwrap_or(0)
    }

    fn context(&self, what: u8) -> Value {
        match what {
            capture_context::TID => Value::Number(self.context.tid.into()),
            capture_context::PID => Value::Number(u64::from(getpid())),
            capture_context::TIME => Value::Number(monotonic_ns()),
            capture_context::CPU => processor().map_or(Value::Missing, |number| Value::Number(number.into())),
            capture_context::THREAD_POINTER => Value::Number(thread_pointer()),
            capture_context::COMM => {
                let name = thread_name();
                Value::Bytes(name.iter().copied().take_while(|byte| *byte != 0).collect())
            }
            _ => Value::Missing,
        }
    }

    fn descriptor_path(&self, _: i32, _: usize) -> Value {
        Value::Missing
    }

    fn kept(&self, _: usize, _: bool) -> Value {
        Value::Missing
    }
}

/// Which one the thread runs on.
fn processor() -> Option<u32> {
    let mut number = 0u32;
    // SAFETY: writes one word.
    let result = unsafe { syscall(number::GETCPU, [&raw mut number as u64, 0, 0, 0, 0, 0]) };
    (result == 0).then_some(number)
}
