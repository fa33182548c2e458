//! Whether bytes are as a pattern has it: `*` stands for any bytes, `?` for one, `[abc]`, `[a-z]` and `[!a]` for one of some, or of all others.
//!
//! Pure. As shells have it, but that `*` and `?` stand for a slash, too. A `[` without an end is itself. In the controller
//! src/clew/capture/globs.py says the same another way.

/// What a pattern begins with.
enum Part<'p> {
    Any,
    One,
    /// Those between the brackets, or all others.
    Of(&'p [u8], bool),
    Byte(u8),
}

/// Whether all of `text` is as `pattern` has it. Takes as long as both together at most, multiplied: it goes back to the last `*` only.
pub fn matches(text: &[u8], pattern: &[u8]) -> bool {
    let (mut at, mut rest) = (0, pattern);
    // Behind the last `*`: the pattern, and where in the text that was tried.
    let mut last: Option<(&[u8], usize)> = None;
    loop {
        let step = first_part(rest);
        match step {
            None if at == text.len() => return true,
            Some((Part::Any, behind)) => {
                last = Some((behind, at));
                rest = behind;
                continue;
            }
            Some((part, behind)) if at < text.len() && is_byte(&part, text[at]) => {
                (at, rest) = (at + 1, behind);
                continue;
            }
            _ => {}
        }
        // One more byte is the last star's.
        match last {
            Some((behind, tried)) if tried < text.len() => {
                last = Some((behind, tried + 1));
                (at, rest) = (tried + 1, behind);
            }
            _ => return false,
        }
    }
}

/// What a pattern begins with, and what is behind that.
fn first_part(pattern: &[u8]) -> Option<(Part<'_>, &[u8])> {
    let (first, behind) = pattern.split_first()?;
    Some(match first {
        b'*' => (Part::Any, behind),
        b'?' => (Part::One, behind),
        b'[' => {
            let is_not = behind.first() == Some(&b'!');
            let set = &behind[usize::from(is_not)..];
            // A bracket that comes first is one of the set.
            match set.iter().skip(1).position(|byte| *byte == b']') {
                Some(end) => (Part::Of(&set[..end + 1], is_not), &set[end + 2..]),
                None => (Part::Byte(b'['), behind),
            }
        }
        byte => (Part::Byte(*byte), behind),
    })
}

fn is_byte(part: &Part, byte: u8) -> bool {
    match part {
        Part::Any => false,
        Part::One => true,
        Part::Byte(own) => *own == byte,
        Part::Of(set, is_not) => is_in(set, byte) != *is_not,
    }
}

/// Whether a byte is one of a set: single ones, and `a-z`, which is none if it goes backwards.
fn is_in(set: &[u8], byte: u8) -> bool {
    let mut rest = set;
    loop {
        rest = match rest {
            [] => return false,
            [low, b'-', high, behind @ ..] => {
                if (*low..=*high).contains(&byte) {
                    return true;
                }
                behind
            }
            [own, behind @ ..] => {
                if *own == byte {
                    return true;
                }
                behind
            }
        };
    }
}

#[cfg(test)]
mod tests {
    extern crate alloc;
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn patterns_are_those_of_shells() {
        let all = [
            ("/etc/passwd", "/etc/*", true),
            ("/etc/a/b", "/etc/*", true),
            ("/etc", "/etc/*", false),
            ("", "", true),
            ("", "*", true),
            ("a", "", false),
            ("abc", "a?c", true),
            ("ac", "a?c", false),
            ("a]c", "a[]]c", true),
            ("abc", "a[!b]c", false),
            ("adc", "a[!b]c", true),
            ("a-c", "a[x-]c", true),
            ("abc", "a[a-b]c", true),
            ("abc", "a[b-a]c", false),
            ("a[c", "a[c", true),
            ("a[!c", "a[!c", true),
            ("a[]c", "a[]c", true),
            ("aab", "*ab", true),
            ("abab", "*ab*b", true),
            ("aba", "*b", false),
        ];
        for (text, pattern, expected) in all {
            assert_eq!(matches(text.as_bytes(), pattern.as_bytes()), expected, "{text} {pattern}");
        }
    }

    #[test]
    fn no_pattern_takes_long() {
        let pattern: Vec<u8> = b"*a".iter().copied().cycle().take(4000).collect();
        assert!(!matches(&[b'a'; 1999], &pattern));
        assert!(matches(&[b'a'; 4096], &pattern));
    }
}
