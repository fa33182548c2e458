//! Which of the application's registers are in slots while an instruction of a fragment runs.

/// Which application registers are in spill slots from an entry on.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpillState {
    /// All where they belong.
    None = 0xff,
    /// r11 is in its slot, its register holds an indirect branch's target.
    Target = 0xf0,
    /// r10, too, which holds the index.
    Both = 0xf1,
    /// As Both, and the return address has been pushed.
    BothPushed = 0xf2,
    /// As BothPushed, and it is on the shadow stack, too.
    BothCalled = 0xf7,
    /// The return address has been pushed.
    Pushed = 0xf3,
    /// Code after a return, of the return address and not of the call.
    Landing = 0xf5,
    /// As Both, and the return's stack slots are dropped: the branch is as good as done.
    Dropped = 0xf6,
    /// As Both, and the return slot holds a cache address.
    BothReturning = 0xf4,
    /// Register n is in the address slot.
    R0 = 0,
    R1,
    R2,
    R3,
    R5 = 5,
    R6,
    R7,
    R8,
    R9,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15,
}

impl SpillState {
    /// The state in which general register `number` is in the address slot.
    pub fn of_register(number: u8) -> SpillState {
        const STATES: [SpillState; 16] = [
            SpillState::R0,
            SpillState::R1,
            SpillState::R2,
            SpillState::R3,
            SpillState::None,
            SpillState::R5,
            SpillState::R6,
            SpillState::R7,
            SpillState::R8,
            SpillState::R9,
            SpillState::R10,
            SpillState::R11,
            SpillState::R12,
            SpillState::R13,
            SpillState::R14,
            SpillState::R15,
        ];
        STATES[number as usize & 15]
    }
}
