//! Returns that often lead elsewhere than their calls: coroutines, threads of a program's own, `push` and `ret`.
//!
//! Such a return is translated as an indirect jump, with a pad for each target. In paths (mode `full`) it writes a symbol from then
//! on, which says where it went and what it popped of the open calls (pathcodec, `symbols`): most find their target where they
//! found it before, so nothing is searched. What is not as before comes to the dispatcher (dispatch/flow/returns.rs).

use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::context::numbers::FragmentId;
use crate::context::ThreadContext;
use crate::instrument::Engine;

/// A return is asked whether it often leads elsewhere when it has done so this often, and each time that is twice as often.
const FIRST_LOOK: u32 = 16;
/// Often: one of so many times. It costs the others a byte and the processor's prediction, and saves those the dispatcher.
const OFTEN: u64 = 8;

impl Engine {
    /// Whether the return at `branch` is translated as an indirect jump.
    pub fn strays(&self, branch: AppPc) -> bool {
        self.path_log.is_unlike(branch)
    }

    /// The return at the end of `source` led elsewhere, or had no quick way there: if it often does, it is translated anew.
    pub fn note_stray(&mut self, writer: &RingWriter, context: &ThreadContext, source: FragmentId) {
        let branch = self.cache.fragment(source).branch_pc();
        if self.strays(branch) {
            return;
        }
        let times = self.strays.entry(branch).or_insert(0);
        *times = times.saturating_add(1);
        let times = *times;
        if times < FIRST_LOOK || !times.is_power_of_two() {
            return;
        }
        let copies = self.fragments_within(branch, branch + 1);
        let executed = copies.iter().map(|id| self.executions_of_return(context, *id, branch)).sum::<u64>();
        if executed > u64::from(times) * OFTEN {
            return;
        }
        self.path_log.turn(branch);
        for id in copies {
            self.retire_to_be_made_again(writer, id);
        }
    }

    /// How often the thread ran fragment `id`, if that ends with the return at `branch`; 0 where it is not counted.
    fn executions_of_return(&self, context: &ThreadContext, id: FragmentId, branch: AppPc) -> u64 {
        let fragment = self.cache.fragment(id);
        match self.is_counted(fragment) && fragment.branch_pc() == branch {
            true => self.executions_of_fragment(context, fragment),
            false => 0,
        }
    }
}
