//! A list of at most so many words, in place: what is captured at every call must not come out of the heap.

use core::mem::MaybeUninit;
use core::ops::Deref;

pub struct Few<const N: usize> {
    /// The first `n` are there.
    words: [MaybeUninit<u64>; N],
    n: usize,
}

impl<const N: usize> Default for Few<N> {
    fn default() -> Few<N> {
        Few { words: [const { MaybeUninit::uninit() }; N], n: 0 }
    }
}

impl<const N: usize> Few<N> {
    /// One more; there is none behind the last.
    pub fn push(&mut self, word: u64) {
        if let Some(place) = self.words.get_mut(self.n) {
            place.write(word);
            self.n += 1;
        }
    }
}

impl<const N: usize> Deref for Few<N> {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        // SAFETY: so many were written.
        unsafe { self.words[..self.n].assume_init_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_left_out() {
        let mut few = Few::<2>::default();
        (1..=3).for_each(|word| few.push(word));
        assert_eq!(&few[..], [1, 2]);
    }
}
