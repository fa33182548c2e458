//! A hash table from addresses to numbers of things, with open addressing.

extern crate alloc;
use crate::context::addresses::AppPc;
use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;

/// What things are found by.
pub trait Key: Copy {
    /// The number that stands for it in a table.
    fn number(self) -> u64;
}

impl Key for AppPc {
    fn number(self) -> u64 {
        self.raw()
    }
}

impl Key for u64 {
    fn number(self) -> u64 {
        self
    }
}

/// A place of the table. Every number is a possible key (a program may branch to any), so none of them says that it is free.
#[derive(Clone, Copy)]
struct Place<V> {
    key: u64,
    /// `None`: it is free.
    value: Option<V>,
}

/// Addresses of the program's code, or other numbers, to small values. Under the runtime's lock.
pub struct PcTable<K, V> {
    entries: Vec<Place<V>>,
    used: usize,
    keys: PhantomData<K>,
}

impl<K: Key, V: Copy> PcTable<K, V> {
    const FREE: Place<V> = Place { key: 0, value: None };

    pub const fn new() -> PcTable<K, V> {
        PcTable { entries: Vec::new(), used: 0, keys: PhantomData }
    }

    /// Where a key belongs. Those of 256 bytes of code are neighbours: what runs soon after is found in lines that are near.
    fn home_of(&self, key: u64) -> usize {
        const NEIGHBOURS: u64 = 32;
        let group = (key >> 8).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let member = (key ^ key >> 3) % NEIGHBOURS;
        (group * NEIGHBOURS + member) as usize & (self.entries.len() - 1)
    }

    fn place_of(&self, key: u64) -> usize {
        let mask = self.entries.len() - 1;
        let mut index = self.home_of(key);
        while self.entries[index].value.is_some() && self.entries[index].key != key {
            index = (index + 1) & mask;
        }
        index
    }

    pub fn find(&self, key: K) -> Option<V> {
        if self.entries.is_empty() {
            return None;
        }
        self.entries[self.place_of(key.number())].value
    }

    /// Sets the value of `key`.
    pub fn insert(&mut self, key: K, value: V) {
        let key = key.number();
        if (self.used + 1) * 2 > self.entries.len() {
            self.grow();
        }
        let place = self.place_of(key);
        if self.entries[place].value.is_none() {
            self.used += 1;
        }
        self.entries[place] = Place { key, value: Some(value) };
    }

    /// Forgets `key`.
    pub fn remove(&mut self, key: K) {
        if self.entries.is_empty() {
            return;
        }
        let mask = self.entries.len() - 1;
        let mut hole = self.place_of(key.number());
        if self.entries[hole].value.is_none() {
            return;
        }
        self.used -= 1;
        // Move later entries of the run back over the hole.
        let mut index = hole;
        loop {
            self.entries[hole] = Self::FREE;
            loop {
                index = (index + 1) & mask;
                let entry = self.entries[index];
                if entry.value.is_none() {
                    return;
                }
                let home = self.home_of(entry.key);
                if (index.wrapping_sub(home) & mask) >= (index.wrapping_sub(hole) & mask) {
                    self.entries[hole] = entry;
                    hole = index;
                    break;
                }
            }
        }
    }

    fn grow(&mut self) {
        let size = (self.entries.len() * 2).max(1024);
        let old = core::mem::replace(&mut self.entries, vec![Self::FREE; size]);
        for entry in old {
            if entry.value.is_some() {
                let place = self.place_of(entry.key);
                self.entries[place] = entry;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::collections::HashMap;

    #[test]
    fn every_number_is_a_key() {
        let mut table = PcTable::new();
        table.insert(1u64, 1);
        for key in [0u64, u64::MAX, u64::MAX - 1, 1 << 63] {
            assert_eq!(table.find(key), None);
            table.insert(key, 7);
            assert_eq!(table.find(key), Some(7));
            table.remove(key);
            assert_eq!((table.find(key), table.find(1)), (None, Some(1)));
        }
    }

    #[test]
    fn behaves_like_a_map() {
        let mut table = PcTable::new();
        let mut model = HashMap::new();
        let mut state = 12345u64;
        for step in 0..200_000u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = (state >> 33) % 3000 * 16;
            match state % 3 {
                0 => {
                    table.remove(key);
                    model.remove(&key);
                }
                1 => {
                    table.insert(key, step);
                    model.insert(key, step);
                }
                _ => assert_eq!(table.find(key), model.get(&key).copied()),
            }
        }
        for key in (0..48_000u64).step_by(16) {
            assert_eq!(table.find(key), model.get(&key).copied());
        }
    }
}
