//! Code that is put between the instructions of a block: counters today, and whatever else is to be done at an instruction.
//!
//! A maker decides where its code stands and what it may touch there; the emitter puts it there and asks no more. What is inserted
//! keeps the program's registers and memory, and its flags but where its maker knows them to be dead. It runs each time the
//! instruction behind it is come to, in the thread that does, with the thread's own block in reach.

extern crate alloc;
use crate::context::numbers::CounterId;
use crate::cpu::emit::Emitter;
use crate::cpu::instrument::counting::CountPlace;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// What can be inserted.
pub trait Inserted {
    /// Emits it. Registers are lent where the fragment is `is_lending`: one of them is free then, the other may be kept (cpu::instrument::loops).
    fn emit(&self, emitter: &mut Emitter, is_lending: bool);

    /// How many bytes that takes, and whether these are exact: loops are laid into lines of code (instrument/alignment.rs).
    fn size_bytes(&self) -> (u64, bool);
}

/// Something that is inserted before one of a block's instructions; before that of the number of those that are copied, it stands in
/// front of the way out.
pub struct Insertion {
    pub before: usize,
    pub code: Box<dyn Inserted>,
}

/// What is inserted into a block: what stands before the same instruction does so in the order in which it was added.
pub struct Insertions(Vec<Insertion>);

impl Insertions {
    pub const fn new() -> Insertions {
        Insertions(Vec::new())
    }

    pub fn add(&mut self, before: usize, code: impl Inserted + 'static) {
        self.0.push(Insertion { before, code: Box::new(code) });
    }

    /// How much is inserted.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether anything stands before an instruction.
    pub fn has(&self, before: usize) -> bool {
        self.0.iter().any(|insertion| insertion.before == before)
    }

    /// Emits what stands before an instruction.
    pub fn emit(&self, before: usize, emitter: &mut Emitter, is_lending: bool) {
        for insertion in self.0.iter().filter(|insertion| insertion.before == before) {
            insertion.code.emit(emitter, is_lending);
        }
    }

    /// How many bytes all of it takes, and whether these are exact.
    pub fn size_bytes(&self) -> (u64, bool) {
        let sizes = self.0.iter().map(|insertion| insertion.code.size_bytes());
        sizes.fold((0, true), |(sum, is_exact), (bytes, is_one_exact)| (sum + bytes, is_exact && is_one_exact))
    }
}

/// A counter that is incremented.
pub struct Count {
    pub place: CountPlace,
    pub counter: CounterId,
}

impl Inserted for Count {
    fn emit(&self, emitter: &mut Emitter, is_lending: bool) {
        self.place.emit(emitter, self.counter, is_lending);
    }

    fn size_bytes(&self) -> (u64, bool) {
        self.place.size_bytes()
    }
}
