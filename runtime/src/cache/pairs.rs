//! The pair table: which pad leads from an indirect branch site to a target.
//!
//! Read by the indirect gate in assembly without a lock, by all threads; written under the runtime's lock. An entry's
//! `is_used` is stored last and looked at first, because every number is a possible target: a program may have code at address
//! zero. Entries never move inside a table; a grown table is a new one, the old stays readable.

use super::exit::PadId;
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::{FragmentId, SiteId};
use crate::sys::heap::Arena;

/// As the gate reads it: 32 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PairEntry {
    pub target: AppPc,
    pub site: SiteId,
    /// 0: the entry is free.
    pub is_used: u32,
    /// Cache address of the pad; 0 while there is none.
    pub pad: CachePc,
    /// What is at that address.
    pub way: PairWay,
}

const _: () = assert!(size_of::<PairEntry>() == 32);

/// What an indirect branch or return goes through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PairWay {
    Pad(PadId),
    /// This fragment's verified entry, which takes the place of a pad.
    Verified(FragmentId),
    /// What follows a call.
    Landing,
}

/// What came of setting a way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Insertion {
    /// The table is where it was, as it is whenever it has an entry for the pair already.
    InPlace,
    /// The threads must learn the table's new place.
    TableMoved,
    NoMemory,
}

impl PairEntry {
    /// The fragment whose verified entry it is.
    pub fn verified_fragment(&self) -> Option<FragmentId> {
        match self.way {
            PairWay::Verified(id) => Some(id),
            PairWay::Pad(_) | PairWay::Landing => None,
        }
    }
}

const EMPTY: PairEntry = PairEntry {
    target: AppPc::LOWEST,
    site: SiteId::RETURNS,
    is_used: 0,
    pad: CachePc::NOWHERE,
    way: PairWay::Landing,
};
/// Tables, the smallest first: 2^12, 2^14, ... entries; all of them take their addresses when first used.
const TABLES: usize = 7;

pub struct PairTable {
    tables: [Arena<PairEntry>; TABLES],
    current: usize,
    used: usize,
}

impl PairTable {
    pub const fn new() -> PairTable {
        PairTable {
            tables: [
                Arena::new(32 << 12),
                Arena::new(32 << 14),
                Arena::new(32 << 16),
                Arena::new(32 << 18),
                Arena::new(32 << 20),
                Arena::new(32 << 22),
                Arena::new(32 << 24),
            ],
            current: 0,
            used: 0,
        }
    }

    /// Makes the first table; `false` when memory is used up.
    pub fn initialize(&mut self) -> bool {
        self.fill(0)
    }

    fn fill(&mut self, index: usize) -> bool {
        let n = 1usize << (12 + 2 * index);
        (0..n).all(|_| self.tables[index].push(EMPTY).is_some())
    }

    /// Address of the table and mask of its index, for the threads' contexts.
    pub fn location(&self) -> (u64, u64) {
        let entries = self.tables[self.current].as_slice();
        (entries.as_ptr() as u64, entries.len() as u64 - 1)
    }

    /// Forgets all pads. No other thread may be looking.
    pub fn clear(&mut self) {
        self.tables[self.current].as_mut_slice().fill(EMPTY);
        self.used = 0;
    }

    fn place_of(entries: &[PairEntry], site: SiteId, target: AppPc) -> usize {
        let mask = entries.len() - 1;
        let key = target.raw().wrapping_add(u64::from(site.raw()));
        let mut index = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while entries[index].is_used != 0 && (entries[index].target != target || entries[index].site != site) {
            index = (index + 1) & mask;
        }
        index
    }

    /// The way from a site to a target.
    pub fn find(&self, site: SiteId, target: AppPc) -> Option<PairEntry> {
        let entries = self.tables[self.current].as_slice();
        let entry = entries[Self::place_of(entries, site, target)];
        (entry.is_used != 0).then_some(entry)
    }

    /// Sets a way, which is at `pad`.
    pub fn insert(&mut self, site: SiteId, target: AppPc, pad: CachePc, way: PairWay) -> Insertion {
        let mut insertion = Insertion::InPlace;
        if (self.used + 1) * 2 > self.tables[self.current].len() && self.find(site, target).is_none() {
            let next = self.current + 1;
            if next == TABLES || !self.fill(next) {
                return Insertion::NoMemory;
            }
            for index in 0..self.tables[self.current].len() {
                let entry = self.tables[self.current].as_slice()[index];
                if entry.is_used != 0 {
                    let entries = self.tables[next].as_mut_slice();
                    let place = Self::place_of(entries, entry.site, entry.target);
                    entries[place] = entry;
                }
            }
            self.current = next;
            insertion = Insertion::TableMoved;
        }
        let entries = self.tables[self.current].as_mut_slice();
        let place = Self::place_of(entries, site, target);
        let entry = &mut entries[place];
        if entry.is_used == 0 {
            self.used += 1;
        }
        // SAFETY: the entry is in the table; volatile keeps the order of the stores, which other processors see too
        // (x86 stores are not reordered). Readers look at `is_used` first.
        unsafe {
            (&raw mut entry.site).write_volatile(site);
            (&raw mut entry.target).write_volatile(target);
            (&raw mut entry.pad).write_volatile(pad);
            (&raw mut entry.way).write_volatile(way);
            (&raw mut entry.is_used).write_volatile(1);
        }
        insertion
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::calls::mmap;
    use crate::sys::heap;
    use crate::sys::kernel::{MAP_ANONYMOUS, MAP_NORESERVE, MAP_PRIVATE, PROT_NONE};

    #[test]
    fn what_is_replaced_stays_in_its_table() {
        const RESERVE: u64 = 64 << 30;
        // SAFETY: addresses that nobody uses, for the heap alone.
        let base = unsafe { mmap(0, RESERVE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE) };
        heap::initialize(base.expect("addresses"), RESERVE);
        let mut pairs = PairTable::new();
        let start = AppPc::from_raw(0x1000);
        assert!(pairs.initialize());
        let before = pairs.location();
        let mut n = 0;
        while pairs.insert(SiteId::RETURNS, start + n, CachePc::from_raw(1), PairWay::Landing) == Insertion::InPlace {
            n += 1;
        }
        let after = pairs.location();
        assert_ne!(before, after);
        assert_eq!(n * 2, before.1 + 1);
        // One more would move the table again, but none of these is more.
        while (pairs.used + 1) * 2 <= pairs.tables[pairs.current].len() {
            n += 1;
            assert_eq!(
                pairs.insert(SiteId::RETURNS, start + n, CachePc::from_raw(1), PairWay::Landing),
                Insertion::InPlace
            );
        }
        assert_eq!(pairs.insert(SiteId::RETURNS, start, CachePc::from_raw(2), PairWay::Landing), Insertion::InPlace);
        assert_eq!(
            (pairs.location(), pairs.find(SiteId::RETURNS, start).map(|entry| entry.pad)),
            (after, Some(CachePc::from_raw(2)))
        );
        for target in [AppPc::LOWEST, AppPc::HIGHEST] {
            let used = pairs.used;
            assert!(pairs.find(SiteId::from_raw(3), target).is_none());
            assert!([4, 5]
                .map(|pad| pairs.insert(SiteId::from_raw(3), target, CachePc::from_raw(pad), PairWay::Landing))
                .iter()
                .all(|one| *one != Insertion::NoMemory));
            assert_eq!(
                (pairs.find(SiteId::from_raw(3), target).map(|entry| entry.pad), pairs.used),
                (Some(CachePc::from_raw(5)), used + 1)
            );
        }
    }
}
