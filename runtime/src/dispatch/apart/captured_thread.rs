//! What captures ask about the thread where the dispatcher works them out: at system calls, and at functions whose calls may go another way.

extern crate alloc;
use super::injections;
use crate::context::ThreadContext;
use crate::cpu::context::Registers;
use crate::cpu::guarded;
use crate::cpu::sys::clock::ticks;
use crate::cpu::thread_pointer;
use crate::instrument::captures::evaluate::{Asked, Value};
use crate::instrument::captures::open_calls::OpenCall;
use crate::instrument::captures::taken::kept_of;
use crate::instrument::captures::text_cells::KeptText;
use crate::protocol::capture_context;
use crate::sys::calls::{getpid, monotonic_ns};
use crate::thread::captured_calls::to_ns;
use crate::thread::registry::thread_name;

/// The calling thread, at a call, or behind `call`, with the bytes that this keeps.
pub struct Thread<'t> {
    tid: u32,
    injected: u32,
    registers: &'t Registers,
    call: Option<&'t OpenCall>,
    texts: &'t [KeptText],
}

impl<'t> Thread<'t> {
    pub fn of(context: &'t ThreadContext) -> Thread<'t> {
        Thread::with(&context.registers, context)
    }

    /// The same where the context may change meanwhile, but for those registers.
    pub fn with(registers: &'t Registers, context: &ThreadContext) -> Thread<'t> {
        Thread { tid: context.tid, injected: context.capture.injected, registers, call: None, texts: &[] }
    }

    /// The same behind a call.
    pub fn behind(self, call: &'t OpenCall, texts: &'t [KeptText]) -> Thread<'t> {
        Thread { call: Some(call), texts, ..self }
    }
}

impl Asked for Thread<'_> {
    fn register(&self, number: u64) -> Option<u64> {
        self.registers.held_register(number)
    }

    fn read(&self, address: u64, target: &mut [u8]) -> usize {
        guarded::read_program(target, address)
    }

    fn context(&self, what: u8) -> Value {
        match what {
            capture_context::TID => Value::Number(self.tid.into()),
            capture_context::PID => Value::Number(u64::from(getpid())),
            capture_context::TIME => Value::Number(monotonic_ns()),
            capture_context::INJECTED => Value::Number(self.injected.into()),
            capture_context::THREAD_POINTER => Value::Number(thread_pointer()),
            capture_context::DURATION => {
                self.call.map_or(Value::Missing, |call| Value::Number(to_ns(ticks().saturating_sub(call.tsc))))
            }
            capture_context::BEGAN => self.call.map_or(Value::Missing, |call| Value::Number(call.tsc)),
            capture_context::FRAME => self.call.map_or(Value::Missing, |call| Value::Number(call.stack_pointer)),
            capture_context::COMM => {
                let name = thread_name();
                Value::Bytes(name.iter().copied().take_while(|byte| *byte != 0).collect())
            }
            _ => Value::Missing,
        }
    }

    fn descriptor_path(&self, descriptor: i32, limit: usize) -> Value {
        injections::descriptor_path(descriptor, limit)
    }

    fn kept(&self, field: usize, is_text: bool) -> Value {
        self.call.map_or(Value::Missing, |call| kept_of(call, self.texts, field, is_text))
    }
}
