//! Where a ring of io_uring has what, as io_uring_setup says it. Pure. Flags and offsets are those of include/uapi/linux/io_uring.h.

/// struct io_uring_params, with sq_off and cq_off.
pub const PARAMS_BYTES: usize = 120;
pub const SQE_BYTES: usize = 64;
pub const CQE_BYTES: usize = 16;

/// The kernel makes no larger ones (IORING_MAX_ENTRIES, IORING_MAX_CQ_ENTRIES).
const MAX_SUBMISSIONS: u32 = 32768;
const MAX_COMPLETIONS: u32 = 2 * MAX_SUBMISSIONS;

pub const SETUP_SQPOLL: u32 = 1 << 1;
const SETUP_SQE128: u32 = 1 << 10;
const SETUP_CQE32: u32 = 1 << 11;
pub const SETUP_NO_MMAP: u32 = 1 << 14;
pub const SETUP_REGISTERED_FD_ONLY: u32 = 1 << 15;
pub const SETUP_NO_SQARRAY: u32 = 1 << 16;
pub const SETUP_CQE_MIXED: u32 = 1 << 18;
pub const SETUP_SQE_MIXED: u32 = 1 << 19;

/// What was asked for, and where the ring has what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Layout {
    pub sq_entries: u32,
    pub cq_entries: u32,
    flags: u32,
    pub sq_head: u32,
    pub sq_tail: u32,
    pub array: u32,
    pub cq_tail: u32,
    pub cqes: u32,
    /// Where the program has the memory by itself (IORING_SETUP_NO_MMAP).
    pub own_rings: u64,
    pub own_sqes: u64,
}

impl Layout {
    /// Out of a struct io_uring_params, as io_uring_setup left it. `None`: the kernel makes none like that.
    pub fn of(params: &[u8; PARAMS_BYTES]) -> Option<Layout> {
        let word = |at: usize| u32::from_le_bytes(core::array::from_fn(|index| params[at + index]));
        let address = |at: usize| u64::from_le_bytes(core::array::from_fn(|index| params[at + index]));
        let layout = Layout {
            sq_entries: word(0),
            cq_entries: word(4),
            flags: word(8),
            sq_head: word(40),
            sq_tail: word(44),
            array: word(64),
            cq_tail: word(84),
            cqes: word(100),
            own_sqes: address(72),
            own_rings: address(112),
        };
        let is_sound = layout.sq_entries.is_power_of_two()
            && layout.cq_entries.is_power_of_two()
            && layout.sq_entries <= MAX_SUBMISSIONS
            && layout.cq_entries <= MAX_COMPLETIONS;
        is_sound.then_some(layout)
    }

    /// The same of a ring that was made as this one, and has other sizes since (IORING_REGISTER_RESIZE_RINGS).
    pub fn resized(&self, other: Layout) -> Layout {
        Layout { flags: self.flags, ..other }
    }

    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    pub fn sqe_bytes(&self) -> u64 {
        (SQE_BYTES << u32::from(self.has(SETUP_SQE128))) as u64
    }

    pub fn cqe_bytes(&self) -> u64 {
        (CQE_BYTES << u32::from(self.has(SETUP_CQE32))) as u64
    }
}
