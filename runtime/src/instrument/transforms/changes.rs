//! What is changed in one block: instructions that are left out, and code that is added in front of others or behind them.
//!
//! What was added stands for the instruction that it is at: a fault there is a fault of that one, and a thread that goes on at it
//! executes what is in front of it again. The block's end stays what it is, since the trace speaks of it.

extern crate alloc;
use super::super::kinds::count_copied;
use crate::context::addresses::AppPc;
use crate::cpu::translate::Added;
use crate::decode::{Block, Ending};
use crate::protocol::{piece_kind, piece_place, BlockChange, BlockPiece, InlinePiece};
use alloc::vec::Vec;

/// A fragment has so much room beside what the block itself takes.
const MAX_ADDED_BYTES: usize = 0xa000;
/// An instruction takes at most so many times its bytes, where it names memory relative to itself (cpu::translate).
const GROWTH: usize = 5;
/// Keeping registers and flags takes at most so many bytes.
const KEEPING_BYTES: usize = 200;

/// What is changed at one instruction.
pub struct Change {
    pub pc: AppPc,
    /// It is not executed.
    pub is_dropped: bool,
    pub before: Vec<Added>,
    pub after: Vec<Added>,
}

/// What is changed in a block, by address.
#[derive(Default)]
pub struct Changes {
    list: Vec<Change>,
    /// The program's instructions are all executed, and nothing beside them but what keeps everything that they ask for.
    pub keeps_code: bool,
}

impl Changes {
    /// Reads what the controller said of a block that ends so; `None`: it can't be done.
    pub fn parse(bytes: &[u8], block: &Block, ending: Ending, kind: u8) -> Option<Changes> {
        let n_copied = count_copied(block, ending, kind);
        let mut list = Vec::new();
        let mut keeps_code = true;
        let (mut rest, mut size, mut next) = (bytes, 0, 0);
        while !rest.is_empty() {
            // SAFETY: any bytes are one.
            let head: BlockChange = unsafe { take(&mut rest) }?;
            let pc = block.pc + u64::from(head.offset);
            let index = (next..block.count()).find(|index| block.pc_of(*index) == pc)?;
            next = index + 1;
            keeps_code &= head.is_dropped == 0;
            let mut change = Change { pc, is_dropped: head.is_dropped != 0, before: Vec::new(), after: Vec::new() };
            for _ in 0..head.n_pieces {
                // SAFETY: as above.
                let piece: BlockPiece = unsafe { take(&mut rest) }?;
                let (code, behind) = rest.split_at_checked(usize::from(piece.size_bytes))?;
                rest = behind;
                let at = if piece.place == piece_place::AFTER { block.pc_behind(index) } else { pc };
                let added = match piece.kind {
                    piece_kind::CODE => Added::decode(code, at)?,
                    piece_kind::VERBATIM => Added::verbatim(code),
                    piece_kind::INLINE => {
                        let mut code = code;
                        // SAFETY: as above.
                        let head: InlinePiece = unsafe { take(&mut code) }?;
                        Added::inline(head, code)?
                    }
                    piece_kind::MARK => {
                        let mut code = code;
                        // SAFETY: as above.
                        Added::mark(unsafe { take(&mut code) }?)
                    }
                    _ => return None,
                };
                keeps_code &= piece.kind != piece_kind::CODE;
                size += match piece.kind {
                    piece_kind::CODE => code.len() * GROWTH,
                    piece_kind::INLINE | piece_kind::MARK => code.len() + KEEPING_BYTES,
                    _ => code.len(),
                };
                match piece.place {
                    piece_place::BEFORE => change.before.push(added),
                    piece_place::AFTER => change.after.push(added),
                    _ => return None,
                }
            }
            if index >= n_copied && (change.is_dropped || !change.after.is_empty()) {
                return None;
            }
            list.push(change);
        }
        (size <= MAX_ADDED_BYTES).then_some(Changes { list, keeps_code })
    }

    /// What is changed at the instruction there.
    pub fn at(&self, pc: AppPc) -> Option<&Change> {
        let index = self.list.binary_search_by_key(&pc, |change| change.pc).ok()?;
        self.list.get(index)
    }

    /// Whether the block is what it is.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// Takes a value off the front of some bytes.
///
/// # Safety
/// All values of `T` are made of any bytes.
unsafe fn take<T: Copy>(bytes: &mut &[u8]) -> Option<T> {
    let (first, rest) = bytes.split_at_checked(size_of::<T>())?;
    *bytes = rest;
    // SAFETY: there are as many bytes; which ones is no matter.
    Some(unsafe { (first.as_ptr() as *const T).read_unaligned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::decode::samples::loop_of_one;
    use crate::protocol::exit_kind;

    const PC: AppPc = AppPc::from_raw(0x1000);

    fn parse(bytes: &[u8]) -> Option<Changes> {
        let block = loop_of_one(PC);
        Changes::parse(bytes, &block, Ending::Conditional(PC), exit_kind::CONDITIONAL)
    }

    #[test]
    fn what_is_changed_is_found_by_address() {
        let offset = (loop_of_one(PC).last_pc() - PC) as u8;
        let bytes = [0, 0, 1, 0, offset, 0, 0, 1, piece_place::BEFORE, piece_kind::VERBATIM, 1, 0, 0x90];
        let changes = parse(&bytes).expect("changes");
        assert!(changes.at(PC).is_some_and(|change| change.is_dropped && change.before.is_empty()));
        assert!(changes.at(PC + u64::from(offset)).is_some_and(|change| change.before.len() == 1));
        assert!(changes.at(PC + 1).is_none() && !changes.is_empty());
        assert!(parse(&[]).is_some_and(|changes| changes.is_empty()));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let offset = (loop_of_one(PC).last_pc() - PC) as u8;
        assert!(parse(&[offset, 0, 1, 0]).is_none(), "the branch at the end stays");
        assert!(
            parse(&[offset, 0, 0, 1, piece_place::AFTER, piece_kind::VERBATIM, 0, 0]).is_none(),
            "nothing is behind it"
        );
        assert!(parse(&[1, 0, 1, 0]).is_none(), "in the middle of an instruction");
        assert!(parse(&[0, 0, 0, 0, 0, 0, 0, 0]).is_none(), "the same one twice");
        assert!(parse(&[0, 0, 1]).is_none() && parse(&[0, 0, 0, 1]).is_none(), "cut off");
        assert!(parse(&[0, 0, 0, 1, 0, piece_kind::VERBATIM, 2, 0, 0x90]).is_none(), "fewer bytes than it says");
        assert!(parse(&[0, 0, 0, 1, 2, piece_kind::VERBATIM, 0, 0]).is_none(), "no place");
        assert!(parse(&[0, 0, 0, 1, 0, 9, 0, 0]).is_none(), "no kind");
        let inline = |registers: [u8; 2]| [0, 0, 0, 1, 0, piece_kind::INLINE, 4, 0, registers[0], registers[1], 1, 0];
        assert!(parse(&inline([0b1100_0011, 0b1100])).is_some_and(|changes| changes.keeps_code));
        assert!(parse(&[0, 0, 0, 1, 0, piece_kind::INLINE, 3, 0, 0, 0, 0]).is_none(), "no head");
    }
}
