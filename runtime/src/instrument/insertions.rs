//! Code that is put between the instructions of a block: counters today, and whatever else is to be done at an instruction.
//!
//! A maker decides where its code stands and what it may touch there; the emitter puts it there and asks no more. What is inserted
//! keeps the program's registers and memory, and its flags but where its maker knows them to be dead. It runs each time the
//! instruction behind it is come to, in the thread that does, with gs on the thread's own block.

extern crate alloc;
use crate::cpu::emit::Emitter;
use crate::cpu::instrument::counting::CountPlace;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// What can be inserted.
pub trait Inserted {
    /// Emits it. r10 and r11 are lent where the fragment is `is_lending`: r11 is free then, r10 may be kept (instrument/counts/loops.rs).
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
    pub counter: u32,
}

impl Inserted for Count {
    fn emit(&self, emitter: &mut Emitter, is_lending: bool) {
        self.place.emit(emitter, self.counter, is_lending);
    }

    fn size_bytes(&self) -> (u64, bool) {
        self.place.size_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::displacements::{GS_GATE_EXIT, GS_SITE};
    use crate::cpu::{INDEX, TARGET};
    use iced_x86::{Code, Decoder, DecoderOptions, Register};

    /// An event: a number is written where the thread's own block has room for it. Needs no register, changes no flags.
    struct Event {
        number: u32,
    }

    impl Inserted for Event {
        fn emit(&self, emitter: &mut Emitter, _: bool) {
            emitter.store_gs_immediate(GS_SITE, self.number);
        }

        fn size_bytes(&self) -> (u64, bool) {
            (13, false)
        }
    }

    /// A callout: what it is about in r11, then a gate, which comes back behind it.
    struct Callout {
        about: u64,
    }

    impl Inserted for Callout {
        fn emit(&self, emitter: &mut Emitter, is_lending: bool) {
            if !is_lending {
                emitter.lend();
            }
            emitter.load_immediate(TARGET, self.about);
            emitter.copy_register(INDEX, TARGET);
            emitter.jump_gs(GS_GATE_EXIT);
            if !is_lending {
                emitter.take_back_lent();
            }
        }

        fn size_bytes(&self) -> (u64, bool) {
            (64, false)
        }
    }

    fn emitted(insertions: &Insertions, before: usize, is_lending: bool) -> Vec<Code> {
        let mut buffer = [0; 256];
        let mut emitter = Emitter::new(&mut buffer, 0x1000, &mut [], 0);
        insertions.emit(before, &mut emitter, is_lending);
        let size = emitter.position();
        Decoder::with_ip(64, &buffer[..size], 0x1000, DecoderOptions::NONE).into_iter().map(|one| one.code()).collect()
    }

    #[test]
    fn what_is_inserted_stands_where_its_maker_says() {
        let mut insertions = Insertions::new();
        insertions.add(2, Event { number: 7 });
        insertions.add(0, Event { number: 8 });
        insertions.add(2, Callout { about: 0x1234 });
        assert_eq!(emitted(&insertions, 0, true), [Code::Mov_rm32_imm32]);
        assert_eq!(emitted(&insertions, 1, true), []);
        let lent = [Code::Mov_rm32_imm32, Code::Mov_r32_imm32, Code::Mov_rm64_r64, Code::Jmp_rm64];
        assert_eq!(emitted(&insertions, 2, true), lent);
        assert_eq!(emitted(&insertions, 2, false).len(), lent.len() + 4, "the registers go to their slots and back");
        assert!(insertions.has(2) && !insertions.has(1));
        assert_eq!(insertions.size_bytes(), (13 + 13 + 64, false));
    }

    #[test]
    fn an_event_names_no_register_of_the_programs() {
        let mut insertions = Insertions::new();
        insertions.add(0, Event { number: 7 });
        let mut buffer = [0; 64];
        let mut emitter = Emitter::new(&mut buffer, 0x1000, &mut [], 0);
        insertions.emit(0, &mut emitter, false);
        let size = emitter.position();
        for one in Decoder::with_ip(64, &buffer[..size], 0x1000, DecoderOptions::NONE) {
            assert!(matches!(one.memory_base(), Register::None | Register::EIP));
            assert_eq!(one.rflags_modified(), 0);
        }
    }
}
