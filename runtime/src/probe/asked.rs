//! What captures ask about a thread that has come to a probe.

extern crate alloc;
use super::backtraces;
use super::program_memory::read_memory;
use crate::context::ThreadContext;
use crate::cpu::context::Registers;
use crate::cpu::sys::clock::ticks;
use crate::cpu::sys::number;
use crate::cpu::thread_pointer;
use crate::instrument::captures::evaluate::{Asked, Value};
use crate::instrument::captures::open_calls::OpenCall;
use crate::instrument::captures::taken::kept_of;
use crate::instrument::captures::text_cells::KeptText;
use crate::protocol::capture_context;
use crate::sys::calls::{getpid, monotonic_ns, syscall};
use crate::thread::captured_calls::to_ns;
use crate::thread::registry::thread_name;

/// The calling thread, in front of an instruction; or where `call` is about to return, with the bytes that this keeps.
pub struct Probed<'t> {
    registers: &'t Registers,
    block: u64,
    tid: u32,
    call: Option<(&'t OpenCall, &'t [KeptText])>,
}

impl<'t> Probed<'t> {
    pub fn of(context: &'t ThreadContext) -> Probed<'t> {
        Probed { registers: &context.registers, block: context.self_address, tid: context.tid, call: None }
    }

    pub fn behind(self, call: &'t OpenCall, texts: &'t [KeptText]) -> Probed<'t> {
        Probed { call: Some((call, texts)), ..self }
    }
}

impl Asked for Probed<'_> {
    fn register(&self, number: u64) -> Option<u64> {
        self.registers.held_register(number)
    }

    fn read(&self, address: u64, target: &mut [u8]) -> usize {
        read_memory(address, target)
    }

    fn context(&self, what: u8) -> Value {
        let of_call =
            |value: fn(&OpenCall) -> u64| self.call.map_or(Value::Missing, |(call, _)| Value::Number(value(call)));
        match what {
            capture_context::TID => Value::Number(self.tid.into()),
            capture_context::PID => Value::Number(u64::from(getpid())),
            capture_context::TIME => Value::Number(monotonic_ns()),
            capture_context::CPU => processor().map_or(Value::Missing, |number| Value::Number(number.into())),
            capture_context::THREAD_POINTER => Value::Number(thread_pointer()),
            capture_context::DURATION => of_call(|call| to_ns(ticks().saturating_sub(call.tsc))),
            capture_context::BEGAN => of_call(|call| call.tsc),
            capture_context::FRAME => of_call(|call| call.stack_pointer),
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

    fn backtrace(&self, n_frames: usize) -> Value {
        Value::Bytes(backtraces::take(self.registers, self.block, n_frames))
    }

    fn kept(&self, field: usize, is_text: bool) -> Value {
        self.call.map_or(Value::Missing, |(call, texts)| kept_of(call, texts, field, is_text))
    }
}

/// Which one the thread runs on.
fn processor() -> Option<u32> {
    let mut number = 0u32;
    // SAFETY: writes one word.
    let result = unsafe { syscall(number::GETCPU, [&raw mut number as u64, 0, 0, 0, 0, 0]) };
    (result == 0).then_some(number)
}
