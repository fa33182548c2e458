//! The text of files in /proc: read, and told again without what is the runtime's.
//!
//! Pure. Knows nothing of where the text comes from.

extern crate alloc;
use super::kernel::{PROT_EXEC, PROT_READ, PROT_WRITE};
use alloc::vec::Vec;
use core::ops::Range;

/// A mapping, as /proc/self/maps tells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    /// PROT_* bits.
    pub protection: u64,
    pub is_shared: bool,
}

/// The line of a mapping, "start-end rwxp ...", and what follows the addresses in it.
pub fn parse_mapping(line: &[u8]) -> Option<(Mapping, &[u8])> {
    let (start, rest) = parse_hex(line)?;
    let (end, rest) = parse_hex(rest.strip_prefix(b"-")?)?;
    let rights = rest.strip_prefix(b" ")?.get(..4)?;
    let bit = |index: usize, letter: u8, value: u64| if rights[index] == letter { value } else { 0 };
    let protection = bit(0, b'r', PROT_READ) | bit(1, b'w', PROT_WRITE) | bit(2, b'x', PROT_EXEC);
    Some((Mapping { start, end, protection, is_shared: rights[3] == b's' }, rest))
}

/// The file behind a mapping.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileMapping {
    pub offset: u64,
    pub inode: u64,
    /// Ends with a zero.
    pub path: Vec<u8>,
}

/// What follows the addresses in a mapping's line: " rwxp offset device inode   path". `None`: it is not of a file.
pub fn parse_file(rest: &[u8]) -> Option<FileMapping> {
    let mut fields = rest.trim_ascii().splitn(5, |byte| *byte == b' ');
    let (offset, _) = parse_hex(fields.nth(1)?)?;
    let inode = core::str::from_utf8(fields.nth(1)?).ok()?.parse().ok()?;
    let path = fields.next()?.trim_ascii_start();
    path.starts_with(b"/").then(|| FileMapping { offset, inode, path: [path, b"\0"].concat() })
}

/// Whether what follows the addresses in a mapping's line says that it is the kernel's, for its probes: [uprobes], or
/// [uprobes-trampoline].
pub fn is_of_probes(rest: &[u8]) -> bool {
    rest.split(|byte| *byte == b' ').next_back().is_some_and(|name| name.starts_with(b"[uprobes"))
}

/// The hexadecimal number at the start, and what follows it.
fn parse_hex(text: &[u8]) -> Option<(u64, &[u8])> {
    let n = text.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(text.len());
    let digits = core::str::from_utf8(&text[..n]).ok()?;
    Some((u64::from_str_radix(digits, 16).ok()?, &text[n..]))
}

/// Appends a number as the kernel does, with at least `width` digits.
fn push_hex(text: &mut Vec<u8>, value: u64, width: u32) {
    let n_digits = (16 - value.leading_zeros() / 4).max(width);
    for index in (0..n_digits).rev() {
        text.push(b"0123456789abcdef"[(value >> (4 * index)) as usize & 15]);
    }
}

fn push_decimal(text: &mut Vec<u8>, value: u64) {
    let start = text.len();
    let mut rest = value;
    loop {
        text.push(b'0' + (rest % 10) as u8);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    text[start..].reverse();
}

/// The process that a path in /proc tells of: ".../PID/NAME" or ".../PID/task/TID/NAME".
pub fn process_of(path: &[u8]) -> Option<u32> {
    let mut names = path.rsplit(|byte| *byte == b'/').skip(1);
    let first = names.next()?;
    let pid = if names.next()? == b"task" { names.next()? } else { first };
    core::str::from_utf8(pid).ok()?.parse().ok()
}

/// "/proc/TID/NAME", zero terminated. A thread of the own process, or a process of its own, is found there by its number.
pub fn task_path(tid: u32, name: &[u8]) -> Vec<u8> {
    let mut path = b"/proc/".to_vec();
    push_decimal(&mut path, u64::from(tid));
    path.push(b'/');
    path.extend_from_slice(name);
    path.push(0);
    path
}

/// The path of the file `name` in the folder of the one at `path`, zero terminated.
pub fn sibling_path(path: &[u8], name: &[u8]) -> Vec<u8> {
    let folder = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    [&path[..folder], name, b"\0"].concat()
}

/// The call that a thread waits in, and the address behind its instruction, as /proc/TID/syscall tells: "NUMBER ARGUMENTS... STACK
/// PC". `None`: it runs, or waits elsewhere.
pub fn blocked_call(text: &[u8]) -> Option<(u64, u64)> {
    let line = core::str::from_utf8(text).ok()?.trim_end();
    let call = line.split(' ').next()?.parse().ok()?;
    let pc = line.rsplit(' ').next()?.strip_prefix("0x")?;
    Some((call, u64::from_str_radix(pc, 16).ok()?))
}

/// What is left of `range` without `hidden`, which is sorted.
pub fn visible_parts(range: &Range<u64>, hidden: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut parts = Vec::new();
    let mut start = range.start;
    for gap in hidden.iter().filter(|gap| gap.start < range.end && range.start < gap.end) {
        if start < gap.start {
            parts.push(start..gap.start);
        }
        start = start.max(gap.end);
    }
    if start < range.end {
        parts.push(start..range.end);
    }
    parts
}

/// The text of maps or smaps without the mappings in `hidden`. The kernel makes one of two mappings that meet and differ in
/// nothing: what of such a one is the program's stays.
pub fn without_mappings(text: &[u8], hidden: &[Range<u64>]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(text.len());
    let mut is_shown = true;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let Some((mapping, rest)) = parse_mapping(line) else {
            if is_shown {
                shown.extend_from_slice(line);
            }
            continue;
        };
        let parts = visible_parts(&(mapping.start..mapping.end), hidden);
        is_shown = !parts.is_empty();
        for part in parts {
            push_hex(&mut shown, part.start, 8);
            shown.push(b'-');
            push_hex(&mut shown, part.end, 8);
            shown.extend_from_slice(rest);
        }
    }
    shown
}

/// The text of maps with a line that says that `reserved`, where it has none, is taken, as memory that may not be accessed.
pub fn with_reserved(text: &[u8], reserved: &Range<u64>) -> Vec<u8> {
    let is_behind = |line: &&[u8]| parse_hex(line).is_some_and(|(start, _)| start >= reserved.end);
    let behind: usize =
        text.split_inclusive(|byte| *byte == b'\n').take_while(|line| !is_behind(line)).map(<[u8]>::len).sum();
    let mut shown = text[..behind].to_vec();
    push_hex(&mut shown, reserved.start, 8);
    shown.push(b'-');
    push_hex(&mut shown, reserved.end, 8);
    shown.extend_from_slice(b" ---p 00000000 00:00 0 \n");
    shown.extend_from_slice(&text[behind..]);
    shown
}

/// The text of numa_maps without the mappings that start in `hidden`.
pub fn without_addresses(text: &[u8], hidden: &[Range<u64>]) -> Vec<u8> {
    let is_shown = |line: &&[u8]| {
        let address = parse_hex(line).map_or(0, |(address, _)| address);
        !hidden.iter().any(|range| range.contains(&address))
    };
    text.split_inclusive(|byte| *byte == b'\n').filter(is_shown).flatten().copied().collect()
}

/// The thread that a status tells of.
pub fn thread_of(text: &[u8]) -> Option<u32> {
    let number = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Pid:\t"))?;
    core::str::from_utf8(number).ok()?.parse().ok()
}

/// Who traces the thread that a status tells of; 0: nobody.
pub fn tracer_of(text: &[u8]) -> Option<u32> {
    let number = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"TracerPid:\t"))?;
    core::str::from_utf8(number).ok()?.parse().ok()
}

/// How much memory is locked, as status tells: "VmLck:  NUMBER kB".
pub fn locked_bytes(text: &[u8]) -> Option<u64> {
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"VmLck:"))?;
    let kilobytes: u64 = core::str::from_utf8(line).ok()?.trim().strip_suffix(" kB")?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The text of status, with what is hidden of the blocked signals, and these masks of ignored and caught ones.
pub fn with_signals(text: &[u8], hidden: u64, ignored: u64, caught: u64) -> Vec<u8> {
    let mut shown = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let value = line.get(8..).and_then(parse_hex).map(|(value, _)| value);
        let mask = match (line.get(..8), value) {
            (Some(b"SigBlk:\t"), Some(blocked)) => blocked | hidden,
            (Some(b"SigIgn:\t"), _) => ignored,
            (Some(b"SigCgt:\t"), _) => caught,
            _ => {
                shown.extend_from_slice(line);
                continue;
            }
        };
        shown.extend_from_slice(&line[..8]);
        push_hex(&mut shown, mask, 16);
        shown.push(b'\n');
    }
    shown
}

/// The fields of stat behind the program's name, which may hold anything, and where they start. The first one is the third
/// in the manual's count.
pub(super) fn fields_of_numbers(text: &[u8]) -> Option<(usize, impl Iterator<Item = &[u8]>)> {
    let start = text.iter().rposition(|byte| *byte == b')')? + 2;
    Some((start, text.get(start..)?.split(|byte| *byte == b' ')))
}

/// The thread that a stat tells of.
pub fn thread_of_numbers(text: &[u8]) -> Option<u32> {
    let number = text.split(|byte| *byte == b' ').next()?;
    core::str::from_utf8(number).ok()?.parse().ok()
}

/// The text of stat, with what is hidden of the blocked signals, and these masks of ignored and caught ones: of the first 31, in
/// decimal (fs/proc/array.c, do_task_stat).
pub fn with_signal_numbers(text: &[u8], hidden: u64, ignored: u64, caught: u64) -> Vec<u8> {
    const BLOCKED: usize = 32 - 3;
    const SHOWN: u64 = 0x7fff_ffff;
    let Some((start, fields)) = fields_of_numbers(text) else {
        return text.to_vec();
    };
    let mut shown = text[..start].to_vec();
    for (index, field) in fields.enumerate() {
        if index != 0 {
            shown.push(b' ');
        }
        let value = core::str::from_utf8(field).ok().and_then(|digits| digits.parse::<u64>().ok());
        match (index, value) {
            (BLOCKED, Some(blocked)) => push_decimal(&mut shown, (blocked | hidden) & SHOWN),
            (index, Some(_)) if index == BLOCKED + 1 => push_decimal(&mut shown, ignored & SHOWN),
            (index, Some(_)) if index == BLOCKED + 2 => push_decimal(&mut shown, caught & SHOWN),
            _ => shown.extend_from_slice(field),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "00400000-00401000 r-xp 00000000 08:01 12   /bin/a file\n\
                        2a0000000000-2a0000010000 r-xp 00000000 00:00 0 \n\
                        7f0000000000-7f0000004000 rwxp 00000000 00:00 0 \n";

    fn text(bytes: Vec<u8>) -> alloc::string::String {
        alloc::string::String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn mappings_are_read() {
        let (mapping, rest) = parse_mapping(b"7f00-8f00 r-xs 0 x").unwrap();
        let expected = Mapping { start: 0x7f00, end: 0x8f00, protection: PROT_READ | PROT_EXEC, is_shared: true };
        assert_eq!((mapping, rest), (expected, &b" r-xs 0 x"[..]));
        for other in [&b"AnonHugePages: 0 kB"[..], b"Size: 4 kB", b"", b"1-", b"1-2 rw", b"fffffffffffffffff-1 rwxp"] {
            assert!(parse_mapping(other).is_none());
        }
    }

    #[test]
    fn files_of_mappings_are_read() {
        let file = parse_file(b" r-xp 00001000 08:01 12   /bin/a file").unwrap();
        assert_eq!(file, FileMapping { offset: 0x1000, inode: 12, path: b"/bin/a file\0".to_vec() });
        for other in [&b" rw-p 0 00:00 0 "[..], b" r-xp 0 00:00 0   [uprobes]", b" r-xp x 08:01 12 /a", b"", b" r-xp 1"]
        {
            assert_eq!(parse_file(other), None);
        }
        assert!(
            is_of_probes(b" --xp 0 00:00 0      [uprobes-trampoline]") && is_of_probes(b" --xp 0 00:00 0 [uprobes]")
        );
        assert!(!is_of_probes(b" r-xp 0 08:01 12 /[uprobes]") && !is_of_probes(b""));
        assert_eq!(tracer_of(b"Pid:\t17\nTracerPid:\t40\n"), Some(40));
        assert_eq!(tracer_of(b"TracerPid:\tx\n"), None);
    }

    #[test]
    fn hidden_mappings_are_left_out_or_cut() {
        let hidden = [0x2a00_0000_0000..0x2b00_0000_0000, 0x7f00_0000_1000..0x7f00_0000_2000];
        let shown = text(without_mappings(MAPS.as_bytes(), &hidden));
        let expected = "00400000-00401000 r-xp 00000000 08:01 12   /bin/a file\n\
                        7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n\
                        7f0000002000-7f0000004000 rwxp 00000000 00:00 0 \n";
        assert_eq!(shown, expected);
        assert_eq!(text(without_mappings(MAPS.as_bytes(), &[])), MAPS);
    }

    #[test]
    fn what_is_reserved_has_its_line() {
        let [low, middle] = [0x1000..0x2000, 0x2b00_0000_0000..0x2c00_0000_0000];
        let lines: Vec<_> = MAPS.split_inclusive('\n').collect();
        let line =
            |range: &Range<u64>| alloc::format!("{:08x}-{:08x} ---p 00000000 00:00 0 \n", range.start, range.end);
        assert_eq!(text(with_reserved(MAPS.as_bytes(), &low)), [&line(&low), MAPS].concat());
        let expected = [lines[0], lines[1], &line(&middle), lines[2]].concat();
        assert_eq!(text(with_reserved(MAPS.as_bytes(), &middle)), expected);
        assert_eq!(text(with_reserved(b"", &low)), line(&low));
    }

    #[test]
    fn what_belongs_to_a_hidden_mapping_goes_with_it() {
        let hidden = core::slice::from_ref(&(0x1000..0x2000));
        let smaps = "1000-2000 rw-p 0\nSize: 4 kB\nAnonymous: 0 kB\n3000-4000 rw-p 0\nSize: 5 kB\n";
        let shown = text(without_mappings(smaps.as_bytes(), hidden));
        assert_eq!(shown, "00003000-00004000 rw-p 0\nSize: 5 kB\n");
        assert_eq!(text(without_addresses(b"1000 default\n2000 default\n", hidden)), "2000 default\n");
    }

    #[test]
    fn calls_that_threads_wait_in_are_read() {
        let waiting = b"202 0x7f 0x80 0x0 0x0 0x0 0x0 0x7ffd00001000 0x2a0000000123\n";
        assert_eq!(blocked_call(waiting), Some((202, 0x2a00_0000_0123)));
        for other in [&b"running\n"[..], b"-1 0x7ffd0000 0x401000\n", b"", b"7", b"7 8", b"7 0xg", b"\xff 0x1"] {
            assert_eq!(blocked_call(other), None);
        }
        assert_eq!(task_path(0, b"x"), b"/proc/0/x\0");
        assert_eq!(task_path(40_301, b"syscall"), b"/proc/40301/syscall\0");
    }

    #[test]
    fn masks_are_replaced() {
        let status =
            "Name:\tx\nPid:\t17\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000000fff\n";
        let expected =
            "Name:\tx\nPid:\t17\nSigBlk:\t0000000000000402\nSigIgn:\t0000000000000010\nSigCgt:\t8000000000000000\n";
        assert_eq!(text(with_signals(status.as_bytes(), 1 << 10, 16, 1 << 63)), expected);
        assert_eq!(thread_of(status.as_bytes()), Some(17));
        assert_eq!(thread_of(b"Name:\tPid:\n"), None);
        assert_eq!(locked_bytes(b"VmSize:\t  9 kB\nVmLck:\t  12 kB\n"), Some(12 * 1024));
        assert_eq!(locked_bytes(b"VmLck:\t  x kB\n"), None);
    }

    #[test]
    fn paths_name_their_process() {
        assert_eq!(process_of(b"/proc/12/maps"), Some(12));
        assert_eq!(process_of(b"/mnt/proc/12/task/14/status"), Some(12));
        assert_eq!(process_of(b"/proc/sys/status"), None);
        assert_eq!(process_of(b"status"), None);
        assert_eq!(sibling_path(b"/proc/1/task/2/stat", b"syscall"), b"/proc/1/task/2/syscall\0");
        assert_eq!(sibling_path(b"", b"x"), b"x\0");
    }

    #[test]
    fn masks_among_numbers_are_replaced() {
        // The name may hold what else separates fields.
        let fields = |blocked: &str| alloc::format!("17 (a) b (c) S{} 5 {blocked} 17 3\n", " 7".repeat(27));
        let before = fields("2 99999 6");
        assert_eq!(text(with_signal_numbers(before.as_bytes(), 1 << 10, 16, 1 << 63 | 5)), fields("1026 16 5"));
        assert_eq!(thread_of_numbers(before.as_bytes()), Some(17));
        assert_eq!(text(with_signal_numbers(b"17 (a S 1", 1, 2, 3)), "17 (a S 1");
        assert_eq!(text(with_signal_numbers(b"17 (a)", 1, 2, 3)), "17 (a)");
        assert_eq!(thread_of_numbers(b"x (y)"), None);
    }
}
