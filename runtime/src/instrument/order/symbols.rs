//! Numbers for the targets of indirect branches, as paths have them (mode `full`); and for those of returns that often lead
//! elsewhere, each together with how many open calls such a return pops.

extern crate alloc;
use crate::context::addresses::AppPc;
use crate::instrument::Engine;
use crate::protocol::NO_SYMBOL;
use alloc::collections::BTreeMap;
use clew_pathcodec::symbols::{pops_of_return, RETURN_WAYS};

/// More open calls a return's symbol does not pop.
pub const MAX_POPS: usize = RETURN_WAYS as usize;

/// Numbers by address of the branch and of the target: copies of a branch agree.
pub struct Symbols {
    numbers: BTreeMap<(AppPc, AppPc), u16>,
    /// How many targets a branch has.
    counts: BTreeMap<AppPc, u16>,
    /// By address of a return and of its target: its symbols for that.
    returns: BTreeMap<(AppPc, AppPc), ReturnSymbols>,
    /// How many pairs of target and pops a return has with so many pops.
    return_counts: BTreeMap<(AppPc, usize), u16>,
}

/// The symbols of one return for one target.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ReturnSymbols {
    /// By how many calls they pop, less one.
    by_pops: [Option<u16>; MAX_POPS],
    /// Where none of the topmost calls has the target's address, one is popped.
    pub pops_others: bool,
}

impl ReturnSymbols {
    /// The symbol that pops so many.
    pub fn find(&self, pops: usize) -> Option<u16> {
        self.by_pops.get(pops.checked_sub(1)?).copied().flatten()
    }

    /// Which of them there are: a bit each, by how many calls they pop, and one for `pops_others`.
    pub fn set(&self) -> u16 {
        self.iter().fold(u16::from(self.pops_others), |set, (pops, _)| set | 1 << pops)
    }

    /// How many calls are popped, and the symbols that say so, the fewest first.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u16)> + '_ {
        (1..=MAX_POPS).filter_map(|pops| Some((pops, self.find(pops)?)))
    }

    /// What a return writes that finds its target `found` calls deep, 1 being the topmost; `None`: in none of those.
    pub fn symbol_for(&self, found: Option<usize>) -> Option<u16> {
        match found {
            Some(pops) => self.find(pops),
            None if self.pops_others => self.find(1),
            None => None,
        }
    }
}

impl Symbols {
    pub const fn new() -> Symbols {
        Symbols {
            numbers: BTreeMap::new(),
            counts: BTreeMap::new(),
            returns: BTreeMap::new(),
            return_counts: BTreeMap::new(),
        }
    }

    /// The number of `target` at the branch at `branch`, given now if it has none. `None`: there are too many.
    pub fn number(&mut self, branch: AppPc, target: AppPc) -> Option<u16> {
        if let Some(number) = self.numbers.get(&(branch, target)) {
            return Some(*number);
        }
        let count = self.counts.entry(branch).or_insert(0);
        let number = *count;
        *count = count.checked_add(1)?;
        self.numbers.insert((branch, target), number);
        Some(number)
    }

    /// The symbols of the return at `branch` for `target`.
    pub fn of_return(&self, branch: AppPc, target: AppPc) -> ReturnSymbols {
        self.returns.get(&(branch, target)).copied().unwrap_or_default()
    }

    /// Has the return at `branch` a symbol for a `target` that is `found` calls deep, or in no call that it looks at. Returns it,
    /// and whether it is new. `None`: there are too many.
    pub fn add_return(&mut self, branch: AppPc, target: AppPc, found: Option<usize>) -> Option<(u16, bool)> {
        let pops = found.unwrap_or(1);
        let mut symbols = self.of_return(branch, target);
        symbols.pops_others |= found.is_none();
        let known = symbols.find(pops);
        let number = match known {
            Some(number) => number,
            None => {
                let count = self.return_counts.entry((branch, pops)).or_insert(0);
                let number = count.checked_mul(RETURN_WAYS)?.checked_add(pops as u16 - 1)?;
                if number == NO_SYMBOL {
                    return None;
                }
                *count += 1;
                *symbols.by_pops.get_mut(pops - 1)? = Some(number);
                number
            }
        };
        debug_assert_eq!(pops_of_return(number), pops);
        self.returns.insert((branch, target), symbols);
        Some((number, known.is_none()))
    }
}

/// A branch has more targets than there are numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyTargets;

impl Engine {
    /// The symbol that a path gets where the branch at `branch` leads to `target`; `None`: no path is recorded.
    pub fn symbol_of(&mut self, branch: AppPc, target: AppPc) -> Result<Option<u16>, TooManyTargets> {
        match self.records_order() {
            true => self.symbols.number(branch, target).map(Some).ok_or(TooManyTargets),
            false => Ok(None),
        }
    }

    /// Whether the return at `branch` writes a symbol.
    pub fn takes_symbol(&self, branch: AppPc) -> bool {
        self.records_order() && self.strays(branch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRANCH: AppPc = AppPc::from_raw(1);
    const OTHER: AppPc = AppPc::from_raw(2);

    #[test]
    fn a_returns_symbol_says_how_much_it_pops() {
        let mut symbols = Symbols::new();
        assert_eq!(symbols.add_return(BRANCH, AppPc::from_raw(10), Some(3)), Some((2, true)));
        assert_eq!(symbols.add_return(BRANCH, AppPc::from_raw(10), Some(3)), Some((2, false)));
        assert_eq!(symbols.add_return(BRANCH, AppPc::from_raw(11), Some(3)), Some((10, true)));
        assert_eq!(symbols.add_return(BRANCH, AppPc::from_raw(10), Some(1)), Some((0, true)));
        let known = symbols.of_return(BRANCH, AppPc::from_raw(10));
        assert_eq!(known.iter().collect::<Vec<_>>(), [(1, 0), (3, 2)]);
        assert_eq!([Some(1), Some(2), None].map(|found| known.symbol_for(found)), [Some(0), None, None]);
        // Elsewhere pops as much as the topmost, and is no symbol of its own.
        assert_eq!(symbols.add_return(BRANCH, AppPc::from_raw(10), None), Some((0, false)));
        assert_eq!(symbols.of_return(BRANCH, AppPc::from_raw(10)).symbol_for(None), Some(0));
        assert_eq!(symbols.of_return(OTHER, AppPc::from_raw(10)), ReturnSymbols::default());
    }

    #[test]
    fn symbols_are_used_up_once() {
        let mut symbols = Symbols::new();
        let given = (0..u64::from(u16::MAX))
            .take_while(|target| symbols.add_return(BRANCH, AppPc::from_raw(*target), Some(8)).is_some());
        assert_eq!(given.count(), usize::from(u16::MAX / RETURN_WAYS));
        assert_eq!(symbols.add_return(BRANCH, AppPc::from_raw(0), Some(8)), Some((7, false)));
    }
}
