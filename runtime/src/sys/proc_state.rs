//! The state of a thread in stat and status, files of /proc: read, and told again as that of one that runs.
//!
//! Pure. Knows nothing of where the text comes from.

extern crate alloc;
use super::proc_text::fields_of_numbers;
use alloc::vec::Vec;

/// What stat and status say of a thread, as far as it matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It waits for something, and a signal ends that.
    Sleeping,
    /// It is stopped for its tracer.
    Traced,
}

const STATE: &[u8] = b"State:\t";

/// Where the letter of the state is, in a text of stat or of status.
fn state_place(text: &[u8]) -> Option<usize> {
    if text.first().is_some_and(u8::is_ascii_digit) {
        return fields_of_numbers(text).map(|(start, _)| start);
    }
    let line = text.windows(1 + STATE.len()).position(|part| part[0] == b'\n' && &part[1..] == STATE)?;
    Some(line + 1 + STATE.len())
}

/// The state in a text of stat or of status; `None`: another one.
pub fn state_of(text: &[u8]) -> Option<State> {
    match text.get(state_place(text)?)? {
        b'S' => Some(State::Sleeping),
        b't' => Some(State::Traced),
        _ => None,
    }
}

/// A text of stat or of status of a thread that runs and has no tracer.
pub fn as_running(text: &[u8]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(text.len() + 16);
    if text.first().is_some_and(u8::is_ascii_digit) {
        shown.extend_from_slice(text);
        if let Some(letter) = state_place(text).and_then(|place| shown.get_mut(place)) {
            *letter = b'R';
        }
        return shown;
    }
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        shown.extend_from_slice(match line {
            line if line.starts_with(STATE) => b"State:\tR (running)\n",
            line if line.starts_with(b"TracerPid:\t") => b"TracerPid:\t0\n",
            line => line,
        });
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_and_replaced() {
        let status = |state: &str, tracer| alloc::format!("Name:\ta\nState:\t{state}\nPid:\t1\nTracerPid:\t{tracer}\n");
        let stat = |state| alloc::format!("17 (a) S (c) {state} 5 6 7\n");
        for (letter, name, state) in [
            ('S', "S (sleeping)", Some(State::Sleeping)),
            ('t', "t (tracing stop)", Some(State::Traced)),
            ('T', "T (stopped)", None),
            ('R', "R (running)", None),
            ('Z', "Z (zombie)", None),
        ] {
            assert_eq!([state_of(stat(letter).as_bytes()), state_of(status(name, 9).as_bytes())], [state; 2]);
        }
        assert_eq!(shown(as_running(stat('S').as_bytes())), stat('R'));
        assert_eq!(shown(as_running(status("t (tracing stop)", 9).as_bytes())), status("R (running)", 0));
        for other in [&b""[..], b"1", b"17 (a)", b"Name:\tState:\tS\n", b"x\nState:\t"] {
            assert_eq!(state_of(other), None);
        }
    }

    fn shown(bytes: Vec<u8>) -> alloc::string::String {
        alloc::string::String::from_utf8(bytes).unwrap()
    }
}
