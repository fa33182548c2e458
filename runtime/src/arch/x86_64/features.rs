//! What this processor can do, and how code is made for it. Found out once, at the start.

use super::question::Question;
use super::{decode, dispatcher, extended_state, forwarding, guarded, selectors};
use crate::protocol::StartBlock;
use core::arch::x86_64::{__cpuid, __cpuid_count};
use core::sync::atomic::{AtomicU32, Ordering};

/// What the emitted code depends on.
#[derive(Clone, Copy)]
pub struct Features {
    /// It has restricted transactional memory.
    pub has_transactions: bool,
    /// It rotates without touching flags (BMI2).
    pub has_rotate: bool,
    /// How it asks without flags.
    pub question: Question,
}

impl Features {
    /// Before anything is known.
    pub const NONE: Features = Features { has_transactions: false, has_rotate: false, question: Question::Plain };

    pub fn of_processor() -> Features {
        // CPUID.7:EBX, BMI2 and RTM (Intel SDM, CPUID).
        let features = __cpuid_count(7, 0).ebx;
        let has_rotate = features & (1 << 8) != 0;
        Features {
            has_transactions: features & (1 << 11) != 0,
            has_rotate,
            question: Question::of_processor(decode::block::is_amd(), has_rotate),
        }
    }
}

/// Whether an instruction tells which processor the thread is on, and nothing else (RDPID): unlike RDTSCP it waits for nothing.
pub fn tells_processor() -> bool {
    const UNKNOWN: u32 = 0;
    const YES: u32 = 1;
    const NO: u32 = 2;
    static TELLS: AtomicU32 = AtomicU32::new(UNKNOWN);
    if TELLS.load(Ordering::Relaxed) == UNKNOWN {
        // CPUID.7:ECX (Intel SDM, CPUID).
        let has = __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ecx & (1 << 22) != 0;
        TELLS.store(if has { YES } else { NO }, Ordering::Relaxed);
    }
    TELLS.load(Ordering::Relaxed) == YES
}

/// Prepares what depends on the processor, in the process's first thread. `dispatch` is what the gates call.
pub fn initialize(block: &StartBlock, dispatch: dispatcher::Dispatch) {
    dispatcher::set_dispatch(dispatch);
    decode::block::initialize();
    extended_state::initialize();
    guarded::initialize();
    selectors::initialize(block.has_fsgsbase != 0);
    forwarding::choose(selectors::set_gs_base);
    selectors::set_gs_base(block.gs_base);
}
