//! Which of the application's registers are in slots: none ever is.

#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpillState {
    None,
    /// Registers are lent.
    Both,
}
