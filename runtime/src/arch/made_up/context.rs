//! What a thread's context holds of the processor.

use crate::context::addresses::AppPc;

/// What a signal frame says of the last fault.
pub type FaultDetails = [u64; 3];

pub fn shown_details(details: FaultDetails, _: FaultDetails) -> FaultDetails {
    details
}

/// The application's registers.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Registers {
    pub pc: AppPc,
    pub accumulator: u64,
    pub flag: bool,
    pub is_stepped: bool,
}

impl Registers {
    /// Whether the processor traps behind each instruction.
    pub fn are_stepped(&self) -> bool {
        self.is_stepped
    }
}

/// Slots of translated code and of the gates: none.
#[repr(C)]
pub struct Gate {}

/// There is no vector state.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Vector {}
