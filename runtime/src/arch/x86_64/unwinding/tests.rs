extern crate std;
use super::*;
use std::sync::Mutex;
use std::vec;
use std::vec::Vec;

/// The tables are the process'.
pub static LOCK: Mutex<()> = Mutex::new(());

pub const CODE: u64 = 0x40_0000;

/// Rules of code at `CODE`, from these places on.
pub struct Made {
    pub area: Vec<u64>,
    pub state: u64,
}

impl Made {
    pub fn new(rows: &[(u64, Rule)]) -> Made {
        let mut area = vec![0u64; 0x2_0000];
        let first = rows[0].0;
        let n_buckets = ((rows[rows.len() - 1].0 - first) >> 8) + 1;
        let table_at = 2 * MAX_UNWIND_IMAGES * IMAGE_BYTES;
        let mut bytes: Vec<u8> = Vec::new();
        for word in [first as u32, 8, rows.len() as u32, n_buckets as u32] {
            bytes.extend(word.to_le_bytes());
        }
        for bucket in 0..=n_buckets {
            let edge = first + (bucket << 8);
            bytes.extend((rows.iter().filter(|row| row.0 < edge).count() as u32).to_le_bytes());
        }
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        for (place, rule) in rows {
            bytes.extend((place << 32 | u64::from(rule.0)).to_le_bytes());
        }
        let mut put = |at: u64, bytes: &[u8]| {
            for (index, part) in bytes.chunks(8).enumerate() {
                area[at as usize / 8 + index] = u64::from_le_bytes(part.try_into().unwrap());
            }
        };
        put(table_at, &bytes);
        let images = [
            (CODE - 0x1000, CODE, unwind_kind::ASKS),
            (CODE, CODE + 0x10_0000, unwind_kind::TABLE),
            (CODE + 0x20_0000, CODE + 0x30_0000, unwind_kind::NOTHING),
        ];
        for (index, (start, end, kind)) in images.into_iter().enumerate() {
            let words = [start, end, CODE, u64::from(kind) | table_at << 32];
            let entry: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            // Of the second directory.
            put(MAX_UNWIND_IMAGES * IMAGE_BYTES + index as u64 * IMAGE_BYTES, &entry);
        }
        Made { area, state: 1 | 3 << 1 | 5 << 16 }
    }

    /// The frames, and what comes behind them where the controller is asked; why there are no more.
    fn walk(&self, start: Frame, limit: usize) -> (Vec<u64>, u8) {
        let _guard = LOCK.lock().unwrap();
        set_tables(self.area.as_ptr() as u64, &raw const self.state as u64);
        let mut out = vec![0xeeu64; limit + 4];
        let mut copy = vec![0u8; COPY_BYTES];
        // SAFETY: there is so much room; nothing of a stack is said to be there.
        let size = unsafe { walk(start, limit, out.as_mut_ptr(), copy.as_mut_ptr(), std::process::id()) };
        set_tables(0, 0);
        assert_eq!(out[limit + 3], 0xee);
        let n_frames = (out[0] >> 32) as usize;
        let end = out[0] as u8;
        assert_eq!(size, 8 * (1 + n_frames + if end == backtrace_end::ASKS { 2 } else { 0 }));
        (out[1..size / 8].to_vec(), end)
    }
}

/// A stack at the beginning of a page: nothing of it is read by plain instructions.
#[repr(align(4096))]
struct Pages([u64; 2048]);

fn rules() -> Vec<(u64, Rule)> {
    std::vec![
        (0x100, Rule::new(Kind::Stack, 8, Saved::Same)),
        (0x101, Rule::new(Kind::Stack, 16, Saved::Below(2))),
        (0x104, Rule::new(Kind::Frame, 16, Saved::Below(2))),
        (0x200, Rule::NOTHING),
        (0x1000, Rule::new(Kind::Stack, 0x40, Saved::Same)),
        (0x1100, Rule::new(Kind::Stub, 11, Saved::Same)),
        (0x1200, Rule::SIGNAL),
        (0x1300, Rule::OUTERMOST),
        (0x1400, Rule::ASK),
        (0x1500, Rule::new(Kind::Stored, -8, Saved::There)),
        (0x1600, Rule::new(Kind::Stack, 0x40, Saved::Lost)),
        (0x1700, Rule::new(Kind::Stack, 0, Saved::Same)),
        (0x1800, Rule::NOTHING),
    ]
}

#[test]
fn each_rule_leads_to_the_caller() {
    let made = Made::new(&rules());
    let mut pages = std::boxed::Box::new(Pages([0; 2048]));
    let base = pages.0.as_ptr() as u64;
    let at = |word: usize| base + 8 * word as u64;
    // A function that begins, called by one with a frame pointer, called in the middle of one without; a stub; a signal; the first one.
    pages.0[1] = CODE + 0x150;
    pages.0[10] = at(30);
    pages.0[11] = CODE + 0x1080;
    pages.0[19] = CODE + 0x1100 + 11 + 1;
    // Behind the stub: what it has pushed, and its return address.
    pages.0[21] = CODE + 0x1201;
    let kept = |offset: i64| 22 + offset as usize / 8;
    pages.0[kept(SIGNAL_FRAME_POINTER)] = at(100);
    pages.0[kept(SIGNAL_STACK_POINTER)] = at(600);
    pages.0[kept(SIGNAL_PC)] = CODE + 0x100;
    pages.0[600] = CODE + 0x1580;
    pages.0[99] = at(700);
    pages.0[100] = at(900);
    pages.0[699] = CODE + 0x20_0010;
    pages.0[900] = 0;
    pages.0[901] = CODE + 0x1380;
    let start = Frame::of_thread(CODE + 0x100, at(1), at(10));
    let wanted = [
        CODE + 0x100,
        CODE + 0x150,
        CODE + 0x1080,
        CODE + 0x110c,
        CODE + 0x1201,
        CODE + 0x100,
        CODE + 0x1580,
        CODE + 0x20_0010,
        CODE + 0x1380,
    ];
    assert_eq!(made.walk(start, 16), (wanted.to_vec(), backtrace_end::OUTERMOST));
    for limit in 1..9 {
        assert_eq!(made.walk(start, limit), (wanted[..limit].to_vec(), backtrace_end::FULL), "{limit}");
    }
}

#[test]
fn what_is_not_known_is_asked() {
    let made = Made::new(&rules());
    let mut pages = std::boxed::Box::new(Pages([0; 2048]));
    let base = pages.0.as_ptr() as u64;
    let of = |made: &Made, pc: u64| made.walk(Frame::of_thread(pc, base + 8, base + 160), 8);
    let asked = |pcs: &[u64], stack: u64, frame: u64| ([pcs, &[stack, frame]].concat(), backtrace_end::ASKS);
    let asks = CODE + 0x1450;
    assert_eq!(of(&made, asks), asked(&[asks], base + 8, base + 160));
    assert_eq!(of(&made, CODE - 1), asked(&[CODE - 1], base + 8, base + 160), "that has to be");
    assert_eq!(of(&made, 0x1234), asked(&[0x1234], base + 8, base + 160), "no image");
    pages.0[8] = CODE + 0x150;
    assert_eq!(of(&made, CODE + 0x1650), asked(&[CODE + 0x1650, CODE + 0x150], base + 0x48, 0), "no frame pointer");
    // Without tables all is asked.
    let none = Made { area: made.area.clone(), state: 0 };
    assert_eq!(of(&none, CODE + 0x100), asked(&[CODE + 0x100], base + 8, base + 160));
}

#[test]
fn frames_grow_and_stacks_end() {
    let made = Made::new(&rules());
    let mut pages = std::boxed::Box::new(Pages([0; 2048]));
    let base = pages.0.as_ptr() as u64;
    let of = |pc: u64, stack: u64, frame: u64| made.walk(Frame::of_thread(pc, stack, frame), 8);
    let ended = |pc: u64| (std::vec![pc], backtrace_end::OUTERMOST);
    pages.0[1] = CODE + 0x1780;
    assert_eq!(of(CODE + 0x1780, base + 16, 0), ended(CODE + 0x1780), "it does not grow");
    assert_eq!(of(CODE + 0x104, base + 160, base), ended(CODE + 0x104), "it is below");
    assert_eq!(of(CODE + 0x100, 8, 0), ended(CODE + 0x100), "nothing is mapped");
    assert_eq!(of(CODE + 0x104, u64::MAX - 4, u64::MAX - 8), ended(CODE + 0x104));
    assert_eq!(of(CODE + 0x20_0000, base, u64::MAX - 7), ended(CODE + 0x20_0000));
    // A frame that says that it is its own caller's.
    pages.0[20] = base + 160;
    pages.0[21] = CODE + 0x20_0010;
    let (frames, end) = of(CODE + 0x20_0000, base, base + 160);
    assert_eq!((frames.len(), end), (2, backtrace_end::OUTERMOST));
}

#[test]
fn tables_that_are_none_harm_nobody() {
    let whole = Made::new(&rules());
    let pages = std::boxed::Box::new(Pages([CODE + 0x150; 2048]));
    let base = pages.0.as_ptr() as u64;
    // As much as the memory that is shared has.
    let mut area = vec![0u64; UNWIND_BYTES as usize / 8];
    area[..whole.area.len()].copy_from_slice(&whole.area);
    let mut made = Made { area, state: whole.state };
    let table = (2 * MAX_UNWIND_IMAGES * IMAGE_BYTES / 8) as usize;
    let directory = (MAX_UNWIND_IMAGES * IMAGE_BYTES / 8) as usize;
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 20
    };
    let mut n_long = 0;
    for round in 0..20_000 {
        let at = [table + (next() % 40) as usize, directory + (next() % 12) as usize][round % 2];
        let before = made.area[at];
        made.area[at] ^= next() << (next() % 40);
        let pc = CODE + next() % 0x1900;
        let (frames, _) = made.walk(Frame::of_thread(pc, base + 8 * (next() % 100), base + 8 * (next() % 2000)), 8);
        n_long += usize::from(frames.len() > 2);
        if round % 8 != 7 {
            made.area[at] = before;
        } else {
            made.area[..whole.area.len()].copy_from_slice(&whole.area);
        }
    }
    assert!(n_long > 1000, "{n_long}");
}
