use super::*;
use std::vec::Vec;

const ADDRESS: u64 = 0x2000;

fn record(content: &[u8]) -> Vec<u8> {
    let mut bytes = (content.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes
}

/// A section of one function, 0x100 bytes at 0x10000, by its instructions.
fn section(name: &[u8], instructions: &[u8]) -> Vec<u8> {
    // Version 1, alignments 1 and -8, rip; addresses of 8 bytes; the frame is rsp + 8, and the return address below it.
    let mut common = [&[0, 0, 0, 0, 1][..], name, &[0, 1, 0x78, 16]].concat();
    common.extend(if name.is_empty() { &[][..] } else { &[1, 0] });
    common.extend([0x0c, 7, 8, 0x90, 1]);
    let mut section = record(&common);
    let distance = section.len() as u32 + 4;
    let mut function = distance.to_le_bytes().to_vec();
    function.extend(0x1_0000u64.to_le_bytes());
    function.extend(0x100u64.to_le_bytes());
    function.extend(if name.is_empty() { &[][..] } else { &[0] });
    function.extend_from_slice(instructions);
    section.extend(record(&function));
    section
}

fn rules(section: &[u8]) -> Vec<(u64, Rule)> {
    let mut found = Vec::new();
    assert!(read_rules(section, ADDRESS, |row| {
        found.push((row.address - 0x1_0000, row.rule));
        true
    }));
    found
}

fn stack(offset: i64, saved: Saved) -> Rule {
    Rule::new(Kind::Stack, offset, saved)
}

#[test]
fn a_function_has_the_rules_of_its_pushes() {
    // push rbp; mov rbp, rsp; push rbx; ...; leave
    let code = [0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x41, 0x83, 3, 0x02, 0x50, 0x0c, 7, 8];
    let frame = Rule::new(Kind::Frame, 16, Saved::Below(2));
    let wanted = [
        (0, stack(8, Saved::Same)),
        (1, stack(16, Saved::Below(2))),
        (4, frame),
        (0x55, stack(8, Saved::Below(2))),
        (0x100, Rule::NOTHING),
    ];
    assert_eq!(rules(&section(b"", &code)), wanted);
    assert_eq!(rules(&section(b"zR", &code)), wanted);
    // What is remembered is there again.
    let code = [0x41, 0x0e, 16, 0x41, 0x0a, 0x0e, 8, 0x41, 0x0b];
    let wanted = [
        (0, stack(8, Saved::Same)),
        (1, stack(16, Saved::Same)),
        (2, stack(8, Saved::Same)),
        (3, stack(16, Saved::Same)),
        (0x100, Rule::NOTHING),
    ];
    assert_eq!(rules(&section(b"", &code)), wanted);
}

#[test]
fn stubs_signals_and_first_functions_are_known() {
    let of = |name: &[u8], code: &[u8]| rules(&section(name, code))[0].1;
    let stub = [0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
    assert_eq!(of(b"", &stub), Rule::new(Kind::Stub, 11, Saved::Same));
    assert_eq!(of(b"", &[0x07, 16]), Rule::OUTERMOST);
    let stored = [0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0];
    assert_eq!(of(b"", &stored), Rule::new(Kind::Stored, -8, Saved::There));
    let signal = [0x0f, 4, 0x77, 0xa0, 1, 6, 0x10, 6, 3, 0x77, 0xf8, 0, 0x10, 16, 3, 0x77, 0xa8, 1];
    assert_eq!(of(b"zRS", &signal), Rule::SIGNAL);
    assert_eq!(of(b"zRS", &signal[..6]), Rule::ASK);
    assert_eq!(of(b"", &[0x0c, 3, 8]), Rule::ASK, "of rbx");
    assert_eq!(of(b"", &[0x0c, 10, 8]), Rule::ASK);
    assert_eq!(of(b"", &[0x09, 16, 2]), Rule::ASK, "the return address is in a register");
}

#[test]
fn what_can_not_be_read_is_asked_from_there_on() {
    let wanted = [(0, stack(8, Saved::Same)), (4, Rule::ASK), (0x100, Rule::NOTHING)];
    assert_eq!(rules(&section(b"", &[0x44, 0x3f, 1, 1])), wanted);
    assert_eq!(rules(&section(b"", &[0x44, 0x0b])), wanted, "nothing is remembered");
}

#[test]
fn any_bytes_are_read_without_harm() {
    let whole = section(b"zR", &[0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x10, 6, 2, 0x76, 0, 0x02, 0x50, 0x0c, 7, 8]);
    let mut state = 1u64;
    let mut n_rows = 0;
    for round in 0..200_000usize {
        let mut bytes = whole.clone();
        for _ in 0..1 + round % 4 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (state >> 33) as usize % bytes.len();
            bytes[at] = (state >> 55) as u8;
        }
        bytes.truncate(bytes.len() - round % 7);
        let limit = round % 5;
        let mut n = 0;
        read_rules(&bytes, ADDRESS, |_| {
            n += 1;
            n < limit
        });
        assert!(n <= limit.max(1), "it is told when no more is wanted");
        n_rows += n;
    }
    assert!(n_rows > 10_000);
}
