//! What a segment went through so far: hashes of its last items, and the longest earlier stretch that was like the latest one.
//!
//! An item is how a conditional or an indirect branch was left.

/// The branch's number in the upper 24 bits, the way in the lower eight.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Item(u32);

impl Item {
    pub fn new(branch: u32, way: u8) -> Item {
        Item(branch << 8 | u32::from(way))
    }

    fn is_of(self, branch: u32) -> bool {
        self.0 >> 8 == branch & 0xff_ffff
    }
}

pub const N_ITEMS: usize = 1 << 20;
pub const N_STRETCHES: usize = 1 << 16;

/// An earlier stretch is looked for by a hash of so many items, about, and must be alike in so many.
const MIN_ALIKE: u32 = 20;
/// No more of them are compared.
const MAX_COMPARED: u32 = 32;
/// Numbers of `likeness`, 0 among them.
pub const N_LIKENESSES: usize = 16;

/// Where an item was is kept with so many bits of the hash of what led there.
const CHECK_BITS: u32 = 32 - N_ITEMS.trailing_zeros();
const CHECK: u32 = u32::MAX << (32 - CHECK_BITS);

/// Hashes of about the last 6, 16 and 32 items: each new one shifts them so far that the oldest falls out.
const SHIFTS: [u32; 3] = [11, 4, 2];
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const STIR: u64 = 0xd6e8_feb8_6659_fd93;

pub struct History<'m> {
    items: &'m mut [u32; N_ITEMS],
    /// Behind the last stretch with this hash; 0 is none.
    stretches: &'m mut [u32; N_STRETCHES],
    n_items: usize,
    hashes: [u64; SHIFTS.len()],
    /// Behind the earlier stretch, and how many items are alike so far; 0 if there is none.
    earlier: usize,
    n_alike: u32,
}

impl<'m> History<'m> {
    pub fn new(items: &'m mut [u32; N_ITEMS], stretches: &'m mut [u32; N_STRETCHES]) -> History<'m> {
        items.fill(0);
        stretches.fill(0);
        History { items, stretches, n_items: 0, hashes: [0; SHIFTS.len()], earlier: 0, n_alike: 0 }
    }

    /// Of the last few items, of more, of most.
    pub fn hashes(&self) -> [u64; SHIFTS.len()] {
        self.hashes
    }

    /// Which way this branch went behind the earlier stretch.
    #[inline]
    pub fn way_of(&self, branch: u32) -> Option<u8> {
        if self.n_alike == 0 {
            return None;
        }
        let item = Item(self.items[self.earlier % N_ITEMS]);
        item.is_of(branch).then_some(item.0 as u8)
    }

    /// How like the earlier stretch is: 0 if there is none.
    #[inline]
    pub fn likeness(&self) -> usize {
        match self.n_alike.checked_ilog2() {
            Some(log) => (log as usize).min(N_LIKENESSES - 1),
            None => 0,
        }
    }

    pub fn push(&mut self, item: Item) {
        let spread = u64::from(item.0).wrapping_add(1).wrapping_mul(SPREAD);
        for (hash, shift) in self.hashes.iter_mut().zip(SHIFTS) {
            *hash = hash.wrapping_mul(STIR << shift).wrapping_add(spread);
        }
        if self.n_alike > 0 {
            let is_alike = self.items[self.earlier % N_ITEMS] == item.0;
            self.n_alike = if is_alike { self.n_alike.saturating_add(1) } else { 0 };
            self.earlier += 1;
        }
        self.items[self.n_items % N_ITEMS] = item.0;
        self.n_items += 1;
        let [.., hash] = self.hashes;
        let stretch = &mut self.stretches[(hash >> 48) as usize % N_STRETCHES];
        let (check, found) = ((hash >> 16) as u32 & CHECK, *stretch);
        *stretch = check | (self.n_items % N_ITEMS) as u32;
        if self.n_alike == 0 && found != 0 && found & CHECK == check {
            self.compare((found & !CHECK) as usize);
        }
    }

    /// Takes the stretch before `earlier` if it is like the latest one.
    fn compare(&mut self, earlier: usize) {
        let mut n_alike = 0;
        while n_alike < MAX_COMPARED {
            let back = 1 + n_alike as usize;
            let (then, now) = (earlier.wrapping_sub(back) % N_ITEMS, self.n_items.wrapping_sub(back) % N_ITEMS);
            if self.items[then] != self.items[now] {
                break;
            }
            n_alike += 1;
        }
        if n_alike >= MIN_ALIKE {
            (self.earlier, self.n_alike) = (earlier, n_alike);
        }
    }
}
