//! Which arguments of system calls are addresses that the kernel may write to.

use crate::cpu::sys::number;

/// Bits of arguments, the first one's lowest, and the calls of which these may be such addresses, from one number to another:
/// what are pointers in include/linux/syscalls.h and not const, nor names or structures that the kernel only reads. Of calls
/// with many purposes the argument that is written by some of them. What is reached by a second pointer is not among them.
#[rustfmt::skip]
const WRITTEN: [(u8, &[(u16, u16)]); 18] = [
    (0b000000, &[(1, 3), (8, 12), (15, 15), (18, 21), (24, 26), (28, 30), (32, 34), (37, 37), (39, 39), (41, 42), (44, 44), (46, 46), (48, 50), (54, 54), (57, 60), (62, 62), (64, 65), (67, 69), (73, 77), (80, 88), (90, 95), (102, 102), (104, 114), (116, 117), (119, 119), (121, 124), (126, 126), (129, 130), (132, 133), (135, 135), (140, 142), (144, 147), (149, 153), (155, 155), (160, 173), (186, 190), (197, 200), (203, 203), (207, 207), (213, 213), (216, 216), (219, 221), (225, 227), (231, 231), (233, 235), (237, 238), (241, 242), (244, 244), (248, 249), (251, 261), (263, 266), (268, 269), (272, 272), (276, 278), (280, 280), (282, 285), (289, 292), (294, 298), (300, 301), (306, 306), (308, 308), (310, 312), (316, 316), (319, 319), (322, 325), (327, 331), (424, 424), (426, 426), (428, 434), (436, 440), (442, 442), (444, 450)]),
    (0b000001, &[(7, 7), (22, 22), (63, 63), (79, 79), (99, 100), (127, 127), (159, 159), (201, 201), (218, 218), (273, 273), (293, 293), (318, 318), (334, 334), (435, 435)]),
    (0b000010, &[(0, 0), (4, 6), (17, 17), (35, 36), (47, 47), (70, 70), (78, 78), (89, 89), (97, 98), (103, 103), (115, 115), (128, 128), (131, 131), (136, 138), (143, 143), (148, 148), (154, 154), (157, 158), (194, 196), (206, 206), (217, 217), (224, 224), (228, 229), (232, 232), (281, 281), (287, 287), (304, 305), (307, 307), (314, 315), (321, 321), (425, 425), (441, 441)]),
    (0b000011, &[(96, 96), (125, 125), (239, 239)]),
    (0b000100, &[(13, 14), (16, 16), (27, 27), (31, 31), (38, 38), (40, 40), (71, 72), (139, 139), (191, 193), (204, 204), (209, 210), (222, 222), (245, 245), (250, 250), (262, 262), (267, 267), (317, 317), (427, 427)]),
    (0b000101, &[(271, 271)]),
    (0b000110, &[(43, 43), (51, 52), (274, 274), (288, 288)]),
    (0b000111, &[(118, 118), (120, 120), (309, 309)]),
    (0b001000, &[(53, 53), (66, 66), (179, 179), (223, 223), (230, 230), (240, 240), (286, 286), (302, 302), (443, 443)]),
    (0b001010, &[(61, 61), (243, 243), (275, 275), (326, 326)]),
    (0b001100, &[(56, 56), (101, 101), (303, 303)]),
    (0b010000, &[(279, 279), (332, 332)]),
    (0b010001, &[(202, 202)]),
    (0b010010, &[(299, 299)]),
    (0b010100, &[(247, 247)]),
    (0b011000, &[(55, 55), (208, 208), (333, 333)]),
    (0b011110, &[(23, 23), (270, 270)]),
    (0b110010, &[(45, 45)]),
];

const N_CALLS: usize = 512;
/// For calls that are not listed.
const ANY: u8 = 0b111111;

static TABLE: [u8; N_CALLS] = {
    let mut table = [ANY; N_CALLS];
    let mut row = 0;
    while row < WRITTEN.len() {
        let (mask, calls) = WRITTEN[row];
        let mut i = 0;
        while i < calls.len() {
            let mut call = calls[i].0;
            while call <= calls[i].1 {
                table[call as usize] = mask;
                call += 1;
            }
            i += 1;
        }
        row += 1;
    }
    table
};

/// The arguments of a call that may be addresses of what the kernel writes. Others are what registers happened to hold.
pub fn written(call: u64, arguments: [u64; 6]) -> impl Iterator<Item = u64> {
    let mask = match call {
        number::FUTEX => futex_mask(arguments[1]),
        number::FCNTL => fcntl_mask(arguments[1]),
        _ => TABLE.get(call as usize).copied().unwrap_or(ANY),
    };
    arguments.into_iter().enumerate().filter(move |(index, _)| mask & 1 << index != 0).map(|(_, argument)| argument)
}

/// As linux/futex.h numbers operations: those that only wait or wake write nothing.
fn futex_mask(operation: u64) -> u8 {
    const COMMANDS: u64 = 0x7f;
    match operation & COMMANDS {
        // WAIT, WAKE, REQUEUE, CMP_REQUEUE, WAIT_BITSET, WAKE_BITSET
        0 | 1 | 3 | 4 | 9 | 10 => 0,
        _ => 0b010001,
    }
}

/// As linux/fcntl.h numbers commands: up to F_SETFL their argument is none, or a number.
fn fcntl_mask(command: u64) -> u8 {
    const F_SETFL: u64 = 4;
    const F_DUPFD_CLOEXEC: u64 = 1030;
    if command <= F_SETFL || command == F_DUPFD_CLOEXEC {
        0
    } else {
        0b000100
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    fn written_of(call: u64, operation: u64) -> Vec<u64> {
        written(call, [100, operation, 102, 103, 104, 105]).collect()
    }

    #[test]
    fn outputs_are_known_by_their_place() {
        assert_eq!(written_of(number::READ, 101), [101]);
        assert_eq!(written_of(number::WRITE, 101), []);
        assert_eq!(written_of(number::RECVFROM, 101), [101, 104, 105]);
        assert_eq!(written_of(number::MPROTECT, 101), []);
        assert_eq!(written_of(number::FUTEX, 128), [], "a private wait");
        assert_eq!(written_of(number::FUTEX, 6), [100, 104], "a lock with priorities");
        assert_eq!(written_of(number::FCNTL, 3), []);
        assert_eq!(written_of(number::FCNTL, 5), [102]);
    }

    #[test]
    fn what_is_not_known_may_write_anything() {
        assert_eq!(written_of(500, 101).len(), 6);
        assert_eq!(written_of(1 << 40, 101).len(), 6);
    }
}
