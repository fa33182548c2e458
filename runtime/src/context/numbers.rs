//! Numbers of what is made of code, each of a type of its own, so that none is taken for another.
//!
//! Assembly, records and the words of a thread's context have them raw.

/// Makes the type of one kind of numbers.
macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub struct $name(u32);

        impl $name {
            /// None of them.
            pub const NONE: $name = $name(u32::MAX);

            pub const fn from_raw(raw: u32) -> $name {
                $name(raw)
            }

            pub const fn raw(self) -> u32 {
                self.0
            }
        }
    };
}

pub(crate) use number;

number! {
    /// A fragment, by the order in which fragments were made.
    FragmentId
}

number! {
    /// A block that is tagged (mode `region`).
    BlockNumber
}

number! {
    /// A counter of each thread's.
    CounterId
}

impl CounterId {
    /// The counters of which none is given out: cells that have their places in the protocol.
    pub const fn of_cell(cell: u64) -> CounterId {
        CounterId(cell as u32)
    }

    /// The counter so many behind this one.
    pub const fn plus(self, n: u32) -> CounterId {
        CounterId(self.0 + n)
    }
}

number! {
    /// A way out of a fragment or pad, by the order in which they were made.
    ExitId
}

impl ExitId {
    /// The exit so many behind this one.
    pub const fn plus(self, n: u32) -> ExitId {
        ExitId(self.0 + n)
    }
}

number! {
    /// The place of an indirect branch or return in the branch tables of all threads.
    SiteId
}

impl SiteId {
    /// All returns by the processor's own predictor share it.
    pub const RETURNS: SiteId = SiteId(0);
}
