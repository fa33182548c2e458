//! Finding restartable sequences (rseq(2)), and cutting code at them.
//!
//! The program stores a descriptor's address just before a critical section starts. That address stands in its code, as an immediate
//! or relative to where it is, and what it points to is checked in every field, with the signature that the program gave the
//! kernel: so a critical section is known before it runs. One that is announced in another way is known once code is translated
//! while it is announced.
//!
//! A block ends where a critical section starts, and inside one
//! - in front of its last instruction, behind which nothing may be aborted any more;
//! - in front of calls, indirect branches, system calls and whatever else does not stay in the enclosure. These instructions
//!   run as anywhere else. If the kernel would have aborted the thread meanwhile, it is when it comes back into the critical section.

use crate::buffer::RingWriter;
use crate::cache::rseq::{AppDescriptor, MAX_RSEQ_BYTES};
use crate::cache::Exit;
use crate::context::addresses::AppPc;
use crate::context::numbers::FragmentId;
use crate::cpu::guarded;
use crate::cpu::sys::kernel::USER_END;
use crate::decode::{decode_block, trusted, Block, Ending};
use crate::instrument::exits::{ExitList, BLANK};
use crate::instrument::request::Request;
use crate::instrument::{BuildError, Engine};
use crate::sys::kernel::PROT_WRITE;

/// Immediates farther than this from code are no descriptors of it.
const NEIGHBOURHOOD: u64 = 1 << 30;
/// No image is below.
const LOWEST: u64 = 0x1_0000;

/// Where a block that was cut lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// In no enclosure.
    Beside,
    /// In one.
    Inside,
    /// As well, as the critical section's last instruction.
    Last,
}

impl Engine {
    /// Translates a decoded block: up to a critical section, or in one.
    pub fn build_around_rseqs(
        &mut self,
        writer: &RingWriter,
        request: Request,
        block: &mut Block,
        ending: Ending,
    ) -> Result<FragmentId, BuildError> {
        if self.cache.rseqs.signature.is_some() {
            for index in 0..block.count() {
                let named = block.named_address(index);
                if let Some(address) = named.filter(|address| may_be_descriptor(*address, block.pc_of(index))) {
                    self.learn_rseq(writer, address, false);
                }
            }
        }
        match self.cut_at_rseqs(block, ending) {
            (ending, Cut::Inside) => self.build_in_rseq(writer, request, block, ending, false),
            (ending, Cut::Last) => self.build_in_rseq(writer, request, block, ending, true),
            (ending, Cut::Beside) => self.build_block(writer, request, block, ending),
        }
    }

    /// Whether the block at `pc` may announce a critical section. What is there before the program has come so far is no descriptor
    /// yet: who translates the block then would not know where the critical section begins. Guarded copies may fault.
    pub fn may_announce(&mut self, pc: AppPc) -> bool {
        let mut block = core::mem::take(&mut self.block);
        let may = decode_block(&mut block, &self.ranges, pc).is_ok()
            && (0..block.count()).any(|index| {
                let named = block.named_address(index);
                named.is_some_and(|address| may_be_descriptor(address, block.pc_of(index)) && may_become_one(address))
            });
        self.block = block;
        may
    }

    /// Cuts a block where it meets a critical section. Returns how it ends now, and where it is to lie.
    fn cut_at_rseqs(&self, block: &mut Block, ending: Ending) -> (Ending, Cut) {
        let rseqs = &self.cache.rseqs;
        if !rseqs.intersects(block.pc, block.end())
            || block.is_writable
            || self.ranges.trusted.contains(trusted::page_of(block.pc))
        {
            return (ending, Cut::Beside);
        }
        let Some(index) = rseqs.find(block.pc) else {
            let Some(n) = (0..block.count()).position(|index| rseqs.find(block.pc_of(index)).is_some()) else {
                return (ending, Cut::Beside);
            };
            block.truncate(n);
            return (Ending::Limit, Cut::Beside);
        };
        let end = rseqs.enclosure(index).descriptor.end();
        let n = block.count();
        let n_plain = if ending == Ending::Limit { n } else { n.saturating_sub(1) };
        if let Some(last) = (0..n_plain).position(|index| block.pc_behind(index) >= end) {
            block.truncate(last.max(1));
            return (Ending::Limit, if last == 0 { Cut::Last } else { Cut::Inside });
        }
        match ending {
            Ending::Limit | Ending::Jump(_) | Ending::Conditional(_) => (ending, Cut::Inside),
            _ if n <= 1 => (ending, Cut::Beside),
            _ => {
                block.truncate(n - 1);
                (Ending::Limit, Cut::Inside)
            }
        }
    }

    /// Learns of the critical section that the descriptor at `address` describes, if there is one; one that overlaps others takes
    /// their place if it `replaces`. Whether it was learned.
    pub fn learn_rseq(&mut self, writer: &RingWriter, address: u64, replaces: bool) -> bool {
        let Some(descriptor) = read_descriptor(address) else {
            return false;
        };
        let (start, end) = (descriptor.start, descriptor.end());
        if self.cache.rseqs.is_given_up(start) || !self.is_rseq(&descriptor) {
            return false;
        }
        if self.cache.rseqs.intersects(start, end) && !replaces {
            return false;
        }
        // Forgets what overlaps it, too.
        self.invalidate(writer, start, end);
        self.make_enclosure(address, descriptor)
    }

    /// Whether a descriptor is one that the kernel would take, of code that does not change. Guarded copies may fault.
    pub fn is_rseq(&self, descriptor: &AppDescriptor) -> bool {
        let (start, end) = (descriptor.start, descriptor.end());
        let is_sound = descriptor.version == 0
            && (1..=MAX_RSEQ_BYTES).contains(&descriptor.size)
            && end.raw() < USER_END
            && end > start
            && !descriptor.contains(descriptor.abort);
        let is_code = |pc| self.ranges.find(pc).is_some_and(|range| range.protection & PROT_WRITE == 0);
        let mut before = [0; 4];
        is_sound
            && is_code(start)
            && is_code(end - 1)
            && is_code(descriptor.abort)
            && guarded::read_code(&mut before, descriptor.abort.wrapping_sub(4)) == before.len()
            && self.cache.rseqs.signature == Some(u32::from_le_bytes(before))
    }

    /// Makes a critical section's enclosure, with what the kernel aborts to. `false`: it is given up.
    fn make_enclosure(&mut self, address: u64, descriptor: AppDescriptor) -> bool {
        let Some(signature) = self.cache.rseqs.signature else {
            return false;
        };
        let abort_exit = self.cache.next_exit();
        let cache = &mut self.cache;
        let Some(index) = cache.rseqs.make(&mut cache.slabs, address, descriptor, signature, abort_exit) else {
            self.cache.rseqs.give_up(descriptor.start);
            return false;
        };
        let enclosure = *self.cache.rseqs.enclosure(index);
        // SAFETY: nothing uses the enclosure yet; the lock is held.
        let mut emitter = unsafe { enclosure.stub_emitter() };
        ExitList::emit_stub_jump(&mut emitter, abort_exit);
        let kind = crate::cache::exit::ExitType::RseqAbort;
        let exit = Exit { target: descriptor.abort, stub: enclosure.stub, kind, fragment: FragmentId::NONE, ..BLANK };
        self.cache.exits.push(exit).is_some() && !emitter.overflowed()
    }

    /// New enclosures for all critical sections, as if they had had none: their code is to be translated again.
    pub fn renew_enclosures(&mut self) {
        for (address, descriptor) in self.cache.rseqs.take_known() {
            self.make_enclosure(address, descriptor);
        }
    }

    /// Another enclosure for the critical section whose enclosure is full, or none.
    pub fn renew_enclosure(&mut self, writer: &RingWriter, index: u32) {
        let enclosure = *self.cache.rseqs.enclosure(index);
        self.invalidate_fragments(writer, enclosure.descriptor.start, enclosure.descriptor.end());
        self.make_enclosure(enclosure.address, enclosure.descriptor);
    }

    /// The critical section is code like any other from now on: the kernel does not abort it.
    pub fn give_up_rseq(&mut self, writer: &RingWriter, index: u32) {
        let descriptor = self.cache.rseqs.enclosure(index).descriptor;
        self.invalidate(writer, descriptor.start, descriptor.end());
        self.cache.rseqs.give_up(descriptor.start);
    }
}

/// Whether `address` may be that of a descriptor which the code at `pc` announces.
pub fn may_be_descriptor(address: u64, pc: AppPc) -> bool {
    pc.raw().abs_diff(address) < NEIGHBOURHOOD && address >= LOWEST && address.is_multiple_of(8)
}

/// Whether what is at `address` is a descriptor, or may be one when addresses in it are relocated, or all of it is written.
fn may_become_one(address: u64) -> bool {
    read_descriptor(address).is_some_and(|found| found.version == 0 && found.size <= MAX_RSEQ_BYTES)
}

/// What the program has at `address`, if it can be read.
pub fn read_descriptor(address: u64) -> Option<AppDescriptor> {
    let mut bytes = [0; size_of::<AppDescriptor>()];
    if guarded::read_program(&mut bytes, address) != bytes.len() {
        return None;
    }
    // SAFETY: as many bytes, and any bytes are a descriptor.
    Some(unsafe { bytes.as_ptr().cast::<AppDescriptor>().read_unaligned() })
}
