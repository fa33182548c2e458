//! Numbers for the targets of indirect branches, as paths have them (mode `full`).

extern crate alloc;
use alloc::collections::BTreeMap;

/// Numbers by address of the branch and of the target: copies of a branch agree.
pub struct Symbols {
    numbers: BTreeMap<(u64, u64), u16>,
    /// How many targets a branch has.
    counts: BTreeMap<u64, u16>,
}

impl Symbols {
    pub const fn new() -> Symbols {
        Symbols { numbers: BTreeMap::new(), counts: BTreeMap::new() }
    }

    /// The number of `target` at the branch at `branch`, given now if it has none. `None`: there are too many.
    pub fn number(&mut self, branch: u64, target: u64) -> Option<u16> {
        if let Some(number) = self.numbers.get(&(branch, target)) {
            return Some(*number);
        }
        let count = self.counts.entry(branch).or_insert(0);
        let number = *count;
        *count = count.checked_add(1)?;
        self.numbers.insert((branch, target), number);
        Some(number)
    }
}
