//! What this processor can do.

/// What the emitted code depends on.
#[derive(Clone, Copy)]
pub struct Features {
    /// It has restricted transactional memory.
    pub has_transactions: bool,
}

impl Features {
    pub const NONE: Features = Features { has_transactions: false };
}
