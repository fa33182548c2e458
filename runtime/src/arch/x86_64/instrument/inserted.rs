//! Examples of what can be inserted: an event, and a callout.

use crate::cpu::displacements::{GS_GATE_EXIT, GS_SITE};
use crate::cpu::emit::Emitter;
use crate::cpu::{INDEX, TARGET};
use crate::instrument::insertions::{Inserted, Insertions};
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
