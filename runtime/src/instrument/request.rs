//! What is asked of the translator: code at an address, how a thread came there, and for whom.

use crate::context::addresses::AppPc;
use crate::context::numbers::ExitId;

/// How execution comes to code for the first time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// By a direct call.
    Call,
    /// By an indirect call or jump.
    Indirect,
    /// By this exit, which is no call.
    Exit(ExitId),
    Other,
}

impl Arrival {
    /// Whether what is come to begins a loop or a function, as far as that is known.
    pub fn is_from_afar(self) -> bool {
        matches!(self, Arrival::Call | Arrival::Indirect)
    }
}

/// Who executes what is translated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// All threads that come there, from now on.
    Everybody,
    /// The calling thread, one instruction: nothing leads there or on but the dispatcher.
    Once {
        /// It is what the thread executes in front of the block where its path goes on (mode full).
        is_before_path: bool,
    },
}

/// A fragment that is to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    pub pc: AppPc,
    pub arrival: Arrival,
    pub purpose: Purpose,
}

impl Request {
    /// For all threads.
    pub fn new(pc: AppPc, arrival: Arrival) -> Request {
        Request { pc, arrival, purpose: Purpose::Everybody }
    }

    /// For one execution.
    pub fn once(pc: AppPc, is_before_path: bool) -> Request {
        Request { pc, arrival: Arrival::Other, purpose: Purpose::Once { is_before_path } }
    }

    pub fn is_once(&self) -> bool {
        self.purpose != Purpose::Everybody
    }

    pub fn is_before_path(&self) -> bool {
        self.purpose == Purpose::Once { is_before_path: true }
    }
}
