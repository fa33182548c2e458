//! A block that a transformer is to see before it is translated: the thread that comes to it first asks, and waits for what is to be changed.

extern crate alloc;
use crate::buffer::Shared;
use crate::context::ThreadContext;
use crate::dispatch::signals::masks;
use crate::instrument::ENGINE;
use crate::protocol::MAX_BLOCK_CHANGES_BYTES;
use crate::thread::registry::writer_of;
use alloc::boxed::Box;

/// Asks about the block of so many bytes at the context's pc. No lock held, the context complete.
///
/// Where nobody answers it is translated as it is.
pub fn ask(context: &mut ThreadContext, shared: Shared, size_bytes: u16) {
    let pc = context.registers.pc;
    // Where the program would have been aborted natively, for that it stopped.
    crate::dispatch::flow::rseq::settle(context);
    if context.registers.pc != pc {
        // It goes on elsewhere, at another block.
        return;
    }
    let writer = writer_of(context, shared);
    let mut bytes = Box::new([0; MAX_BLOCK_CHANGES_BYTES as usize]);
    let n_said = writer.wait_for_changes(pc.raw(), u64::from(size_bytes), &mut bytes);
    let said = n_said.and_then(|n| bytes.get(..n));
    // Code is read, up to where it ends.
    masks::with_faults(context, |_| ENGINE.lock().learn_changes(&writer, pc, size_bytes, said));
}
