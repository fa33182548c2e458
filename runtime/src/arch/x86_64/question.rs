//! How translated code asks whether rcx has a certain value, without touching the flags.
//!
//! Two branches ask rcx and no flags, `loop` and `jrcxz`. The answer is nearly always yes, and the way of that answer should go straight
//! on: a branch that is taken costs a cycle or two, and takes a place in the history by which the processor predicts the
//! program's own branches. `loop` goes straight on where rcx is one, but is slow on other makers' processors than AMD's. `jrcxz`
//! goes straight on where rcx is not zero, so there a number that is zero is turned into one, and any other into zero.

use super::displacements::GS_ONE;
use super::emit::Emitter;
use super::RCX;
use crate::context::addresses::CachePc;

/// The way to ask that this processor is fast with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Question {
    /// By `loop`.
    Loop,
    /// By `jrcxz`, of a number turned round (BMI2).
    Turned,
    /// By `jrcxz` as it is, which is taken where the answer is yes.
    Plain,
}

impl Question {
    pub fn of_processor(is_amd: bool, has_bmi2: bool) -> Question {
        match (is_amd, has_bmi2) {
            (true, _) => Question::Loop,
            (false, true) => Question::Turned,
            (false, false) => Question::Plain,
        }
    }

    /// What rcx holds where the answer is yes.
    pub fn yes(self) -> u64 {
        u64::from(self == Question::Loop)
    }
}

impl Emitter<'_> {
    /// Emits the question whether rcx is `question.yes()`, which goes straight on if it is; rcx is lost. Returns the short branch to
    /// where it is not, for `bind_short`. `None`: the branch must be the other way round.
    pub fn ask_straight(&mut self, question: Question) -> Option<CachePc> {
        match question {
            Question::Loop => Some(self.jump_loop()),
            Question::Turned => {
                self.turn_rcx();
                Some(self.jump_rcx_zero())
            }
            Question::Plain => None,
        }
    }

    /// rcx = 1 if it was 0, or else 0.
    fn turn_rcx(&mut self) {
        // pext rcx, rcx, rcx: as many ones as there were, at its end, so it is odd unless it was zero.
        self.bytes(&[0xc4, 0xe2, 0xf2, 0xf5, 0xc9]);
        // shrx rcx, gs:[one], rcx: one moved out by an odd number of places, or by none.
        self.bytes(&[0x65, 0xc4, 0xe2, 0xf3, 0xf7, (RCX.0 << 3) | 4, 0x25]);
        self.dword(GS_ONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Register};
    use std::arch::global_asm;

    global_asm!(
        ".pushsection .text.clew_turned,\"ax\",@progbits",
        ".globl clew_turned",
        // rdi turned as `turn_rcx` does it, and the flags behind it in *rsi.
        "clew_turned:",
        "mov rcx, rdi",
        "mov eax, 1",
        "push 0x8d5",
        "popfq",
        "pext rcx, rcx, rcx",
        "shrx rcx, rax, rcx",
        "pushfq",
        "pop qword ptr [rsi]",
        "mov rax, rcx",
        "cld",
        "ret",
        ".popsection",
    );

    // SAFETY: defined above.
    unsafe extern "C" {
        fn clew_turned(value: u64, flags: *mut u64) -> u64;
    }

    #[test]
    fn the_question_is_what_was_tried() {
        let mut buffer = [0u8; 64];
        let mut emitter = Emitter::new(&mut buffer, 0x1000, &mut [], 0);
        assert!(emitter.ask_straight(Question::Turned).is_some());
        let end = emitter.position();
        let code: Vec<Instruction> = Decoder::new(64, &buffer[..end], DecoderOptions::NONE).into_iter().collect();
        let codes: Vec<Code> = code.iter().map(Instruction::code).collect();
        assert_eq!(codes, [Code::VEX_Pext_r64_r64_rm64, Code::VEX_Shrx_r64_rm64_r64, Code::Jrcxz_rel8_64]);
        assert_eq!([0, 1, 2].map(|n| code[0].op_register(n)), [Register::RCX; 3]);
        assert_eq!([0, 2].map(|n| code[1].op_register(n)), [Register::RCX; 2]);
        assert_eq!((code[1].memory_segment(), code[1].memory_base()), (Register::GS, Register::None));
        assert_eq!((code[1].memory_displacement64(), GS_ONE % 8), (u64::from(GS_ONE), 0));
    }

    #[test]
    fn zero_becomes_one_and_all_else_zero() {
        if core::arch::x86_64::__cpuid_count(7, 0).ebx & (1 << 8) == 0 {
            std::eprintln!("skipped: needs BMI2");
            return;
        }
        let single = (0..64).map(|bit| 1u64 << bit);
        let others = (0..64).flat_map(|bit| [u64::MAX << bit, u64::MAX >> bit, 5 << bit, !(1u64 << bit)]);
        for value in single.chain(others).chain([0, 0x7fff_1234_0000, 0xffff_0000_ffff_0000]) {
            let mut flags = 0;
            // SAFETY: `flags` is there.
            let turned = unsafe { clew_turned(value, &mut flags) };
            assert_eq!((turned, flags & 0x8d5), (u64::from(value == 0), 0x8d5), "{value:#x}");
        }
    }

    #[test]
    fn each_processor_has_its_question() {
        assert_eq!(Question::of_processor(true, true), Question::Loop);
        assert_eq!(Question::of_processor(false, true), Question::Turned);
        assert_eq!(Question::of_processor(false, false), Question::Plain);
        assert_eq!([Question::Loop, Question::Turned, Question::Plain].map(Question::yes), [1, 0, 0]);
    }
}
