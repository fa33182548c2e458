//! The shadow stack: where returns are expected to lead. The runtime and whoever reads a path keep it by the same rules.

/// A return that leads elsewhere looks so far down for its address.
pub const REACH: usize = 1024;

/// How many of the open calls are left after a return to `target`, which was not the topmost's address: those below the
/// first of the topmost that has it. Where none of them has it, all are left.
pub fn depth_after(open: &[u64], target: u64) -> usize {
    let start = open.len().saturating_sub(REACH);
    match open[start..].iter().rposition(|address| *address == target) {
        Some(found) => start + found,
        None => open.len(),
    }
}

/// Return addresses of open calls, and for each a number of the reader's own.
pub struct ShadowStack<'a> {
    addresses: &'a mut [u64],
    numbers: &'a mut [u32],
    depth: usize,
    forgotten: u64,
}

impl<'a> ShadowStack<'a> {
    /// Of memory for `protocol::MAX_DEPTH` of each, or fewer in tests; nothing is open.
    pub fn new(addresses: &'a mut [u64], numbers: &'a mut [u32]) -> ShadowStack<'a> {
        ShadowStack { addresses, numbers, depth: 0, forgotten: 0 }
    }

    /// As it was with `depth` open of those in memory, and `forgotten` others.
    pub fn restore(addresses: &'a mut [u64], numbers: &'a mut [u32], depth: usize, forgotten: u64) -> ShadowStack<'a> {
        let depth = depth.min(addresses.len()).min(numbers.len());
        ShadowStack { addresses, numbers, depth, forgotten }
    }

    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// How many are open, those that were forgotten among them.
    pub fn depth(&self) -> u64 {
        self.forgotten + self.depth as u64
    }

    pub fn push(&mut self, address: u64, number: u32) {
        if self.depth == self.addresses.len() {
            self.forgotten += self.depth as u64;
            self.depth = 0;
        }
        if let (Some(place), Some(beside)) = (self.addresses.get_mut(self.depth), self.numbers.get_mut(self.depth)) {
            (*place, *beside) = (address, number);
            self.depth += 1;
        }
    }

    /// The topmost's address and number.
    pub fn top(&self) -> Option<(u64, u32)> {
        let index = self.depth.checked_sub(1)?;
        Some((self.addresses[index], self.numbers[index]))
    }

    pub fn pop(&mut self, n: usize) {
        self.depth = self.depth.saturating_sub(n);
    }

    /// What a return to `target` does that is not the topmost's address.
    pub fn return_elsewhere(&mut self, target: u64) {
        self.depth = depth_after(&self.addresses[..self.depth], target);
    }

    /// Open calls, the outermost first.
    pub fn open(&self) -> (&[u64], &[u32]) {
        (&self.addresses[..self.depth], &self.numbers[..self.depth])
    }
}
