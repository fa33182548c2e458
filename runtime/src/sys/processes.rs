//! The processes that can be seen, as /proc lists them.

use super::calls::{check, close, syscall};
use crate::cpu::sys::number;

const O_DIRECTORY: u64 = 0x1_0000;
const PROCESSES: &[u8; 6] = b"/proc\0";
const LIST_BYTES: usize = 2048;
const DIGITS: usize = 10;

/// Calls `act` with the number of each process that can be seen.
pub fn for_each(mut act: impl FnMut(u32)) {
    // SAFETY: reads the path.
    let opened = unsafe { syscall(number::OPEN, [PROCESSES.as_ptr() as u64, O_DIRECTORY, 0, 0, 0, 0]) };
    let Ok(folder) = check(opened) else { return };
    let mut list = [0u8; LIST_BYTES];
    loop {
        // SAFETY: writes at most the buffer.
        let n = unsafe { syscall(number::GETDENTS64, [folder, list.as_mut_ptr() as u64, LIST_BYTES as u64, 0, 0, 0]) };
        let n = check(n).unwrap_or(0) as usize;
        if n == 0 {
            break;
        }
        numbers_in(list.get(..n).unwrap_or_default(), &mut act);
    }
    close(folder);
}

/// The names that are numbers, of entries as getdents64(2) has them: their sizes after two words, their names after a byte more.
fn numbers_in(mut entries: &[u8], act: &mut impl FnMut(u32)) {
    const SIZE_AT: usize = 16;
    const NAME_AT: usize = 19;
    while let Some(&[low, high]) = entries.get(SIZE_AT..SIZE_AT + 2) {
        let size = usize::from(u16::from_le_bytes([low, high]));
        let name = entries.get(NAME_AT..size).unwrap_or_default();
        let digits = name.split(|&byte| byte == 0).next().unwrap_or_default();
        if let Some(number) = parse(digits) {
            act(number);
        }
        let Some(behind) = entries.get(size..).filter(|_| size != 0) else { break };
        entries = behind;
    }
}

fn parse(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || digits.len() > DIGITS - 1 {
        return None;
    }
    digits.iter().try_fold(0, |number: u32, &byte| byte.is_ascii_digit().then(|| number * 10 + u32::from(byte - b'0')))
}

/// The path of a process' memory, with a zero at its end.
pub fn memory_path(pid: u32) -> [u8; 6 + DIGITS + 5] {
    let mut path = [0; 6 + DIGITS + 5];
    let mut digits = [0; DIGITS];
    let (mut rest, mut n) = (pid, 0);
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        n += 1;
        if rest == 0 {
            break;
        }
    }
    let parts = b"/proc/".iter().chain(digits.iter().skip(DIGITS - n)).chain(b"/mem");
    path.iter_mut().zip(parts).for_each(|(to, from)| *to = *from);
    path
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::String;
    use std::vec::Vec;

    #[test]
    fn paths_have_all_digits_and_end_with_a_zero() {
        for pid in [1, 10, 4_194_304, u32::MAX] {
            let path = memory_path(pid);
            let text: Vec<u8> = path.iter().copied().take_while(|&byte| byte != 0).collect();
            assert_eq!(String::from_utf8(text).unwrap(), std::format!("/proc/{pid}/mem"));
            assert_eq!(path[path.len() - 1], 0);
        }
    }

    #[test]
    fn processes_are_those_that_proc_lists() {
        let mut found = Vec::new();
        for_each(|pid| found.push(pid));
        assert!(found.contains(&std::process::id()));
        assert!(found.contains(&1));
    }

    #[test]
    fn what_is_no_list_of_entries_has_no_numbers() {
        let mut entries = Vec::from([0u8; 24]);
        let mut found = Vec::new();
        // A size of nothing, and one that leads behind the end.
        numbers_in(&entries, &mut |pid| found.push(pid));
        entries[16] = 200;
        entries[19..21].copy_from_slice(b"12");
        numbers_in(&entries, &mut |pid| found.push(pid));
        entries[16] = 24;
        numbers_in(&entries, &mut |pid| found.push(pid));
        assert_eq!(found, [12]);
        assert_eq!(parse(b"12x"), None);
        assert_eq!(parse(b"9999999999"), None);
    }
}
