//! A call whose return is captured, and that is over without: it was left by a jump or an exception, or its thread or process ends.
//!
//! Of such a call only what was kept is known, and when it began: that is recorded where the controller asks for it
//! (CapturePlace.tells_left). Of what a signal ends the controller reads the calls that are still open (recording/drain/open_calls.py), and
//! makes the same of them. Runs in the target on the runtime's stack.

use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::cpu::sys::clock::ticks;
use crate::instrument::captures::evaluate::{Asked, Value};
use crate::instrument::captures::layout::Action;
use crate::instrument::captures::open_calls::OpenCall;
use crate::instrument::captures::taken::{kept_of, Taken};
use crate::instrument::captures::taken_records::{record, Heading};
use crate::instrument::captures::text_cells::KeptText;
use crate::instrument::Engine;
use crate::protocol::{capture_context, CAPTURE_EXECUTING, CAPTURE_LEFT};
use crate::sys::calls::getpid;

/// What has become of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Left {
    Over,
    /// It is over if the process executes the program that it is about to execute.
    Executing,
    /// It did not: the call goes on.
    Stays,
}

impl Left {
    /// What a record's number has of it.
    pub fn bits(self) -> u32 {
        let bits = match self {
            Left::Over => CAPTURE_LEFT,
            Left::Executing => CAPTURE_EXECUTING,
            Left::Stays => CAPTURE_LEFT | CAPTURE_EXECUTING,
        };
        bits as u32
    }
}

/// Records a call of a thread, where that is asked for.
pub fn tell(engine: &mut Engine, writer: &RingWriter, tid: u32, call: &OpenCall, texts: &[KeptText], how: Left) {
    let Some(place) = engine.captures.returned_place(call.kind).cloned() else { return };
    for program in place.programs.iter().filter(|one| one.tells_left && one.action == Action::Record) {
        let mut taken = Taken::default();
        if taken.evaluate(program, &LeftCall { tid, call, texts }) {
            let heading =
                Heading { tid, pc: AppPc::from_raw(call.function), tsc: ticks(), number: program.number | how.bits() };
            record(writer, &heading, &taken);
        }
    }
}

/// A call that is over: nothing is known but what it kept.
struct LeftCall<'c> {
    tid: u32,
    call: &'c OpenCall,
    texts: &'c [KeptText],
}

impl Asked for LeftCall<'_> {
    fn register(&self, _: u64) -> Option<u64> {
        None
    }

    fn read(&self, _: u64, _: &mut [u8]) -> usize {
        0
    }

    fn context(&self, what: u8) -> Value {
        match what {
            capture_context::TID => Value::Number(self.tid.into()),
            capture_context::PID => Value::Number(u64::from(getpid())),
            capture_context::BEGAN => Value::Number(self.call.tsc),
            capture_context::FRAME => Value::Number(self.call.stack_pointer),
            _ => Value::Missing,
        }
    }

    fn descriptor_path(&self, _: i32, _: usize) -> Value {
        Value::Missing
    }

    fn kept(&self, field: usize, is_text: bool) -> Value {
        kept_of(self.call, self.texts, field, is_text)
    }
}
