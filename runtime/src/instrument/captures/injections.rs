//! What is done to a call instead of what the program asks for, and at which of a thread's calls.
//!
//! Pure. The fields of a capture say what (enum InjectField). They come out of memory that the program can write to: what makes no sense is
//! nothing.

extern crate alloc;
use super::form::{Form, Kind};
use crate::protocol::{inject_field, injected};
use alloc::collections::BTreeMap;

pub const N_FIELDS: usize = inject_field::STEP as usize + 1;

/// No signal has a higher number.
const MAX_SIGNALS: u64 = 64;

/// Whether a form has the fields of an injection.
pub fn are_fields(form: &Form) -> bool {
    let is_word = |field: &u16| matches!(form.kind_of(usize::from(*field)), Kind::I64 | Kind::U64);
    form.fields.len() == N_FIELDS && form.fields.iter().all(is_word)
}

/// What the fields of one capture say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Injection {
    fields: [u64; N_FIELDS],
}

impl Injection {
    pub fn of(fields: [u64; N_FIELDS]) -> Injection {
        Injection { fields }
    }

    fn get(&self, field: u32) -> u64 {
        self.fields[field as usize]
    }

    fn does(&self, what: u32) -> bool {
        self.get(inject_field::WHAT) & u64::from(what) != 0
    }

    /// Whether it is for the call of that number among those that it is about, counted from 1.
    pub fn is_for(&self, number: u64) -> bool {
        let (first, last) = (self.get(inject_field::FIRST), self.get(inject_field::LAST));
        let step = self.get(inject_field::STEP);
        (first..=last).contains(&number) && (number - first).checked_rem(step) == Some(0)
    }
}

/// What is done to one call, by all injections that are for it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Decision {
    /// Bits of enum Injected.
    pub what: u32,
    pub result: u64,
    /// Where an error number is to be; 0: nowhere.
    pub errno_address: u64,
    pub errno: u32,
    pub delay_enter_ns: u64,
    pub delay_exit_ns: u64,
    /// A bit for each signal, the first one is the lowest.
    pub signals: u64,
}

impl Decision {
    /// One more injection is for the call: of several results the first one counts.
    pub fn add(&mut self, one: &Injection) {
        if one.does(injected::RESULT) && self.what & injected::RESULT == 0 {
            self.what |= injected::RESULT;
            self.result = one.get(inject_field::RESULT);
            self.errno_address = one.get(inject_field::ERRNO_ADDRESS);
            self.errno = one.get(inject_field::ERRNO) as u32;
        }
        if one.does(injected::DELAY_ENTER) {
            self.what |= injected::DELAY_ENTER;
            self.delay_enter_ns = self.delay_enter_ns.saturating_add(one.get(inject_field::DELAY_ENTER));
        }
        if one.does(injected::DELAY_EXIT) {
            self.what |= injected::DELAY_EXIT;
            self.delay_exit_ns = self.delay_exit_ns.saturating_add(one.get(inject_field::DELAY_EXIT));
        }
        let signal = one.get(inject_field::SIGNAL);
        if one.does(injected::SIGNAL) && (1..=MAX_SIGNALS).contains(&signal) {
            self.what |= injected::SIGNAL;
            self.signals |= 1 << (signal - 1);
        }
    }
}

/// How many calls each thread has made that an injection is about: by the thread's private block and the capture.
#[derive(Default)]
pub struct Counts {
    by_thread: BTreeMap<(u64, u32), u64>,
}

impl Counts {
    pub const fn new() -> Counts {
        Counts { by_thread: BTreeMap::new() }
    }

    /// One more: which it is.
    pub fn count(&mut self, block: u64, capture: u32) -> u64 {
        let count = self.by_thread.entry((block, capture)).or_default();
        *count += 1;
        *count
    }

    /// The block is another thread's now.
    pub fn forget(&mut self, block: u64) {
        self.by_thread.retain(|(own, _), _| *own != block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn injection(set: &[(u32, u64)]) -> Injection {
        let mut fields = [0; N_FIELDS];
        for (field, value) in set {
            fields[*field as usize] = *value;
        }
        Injection::of(fields)
    }

    fn chosen(first: u64, last: u64, step: u64) -> Vec<u64> {
        let fields = [(inject_field::FIRST, first), (inject_field::LAST, last), (inject_field::STEP, step)];
        (1..=12).filter(|number| injection(&fields).is_for(*number)).collect()
    }

    #[test]
    fn calls_are_chosen_by_their_number() {
        assert_eq!(chosen(3, 9, 2), [3, 5, 7, 9]);
        assert_eq!(chosen(3, 3, 1), [3]);
        assert_eq!(chosen(10, u64::MAX, 1), [10, 11, 12]);
        assert_eq!(chosen(2, u64::MAX, 5), [2, 7, 12]);
        assert_eq!(chosen(9, 3, 1), []);
        assert_eq!(chosen(1, 12, 0), []);
    }

    #[test]
    fn the_first_result_counts_and_delays_add_up() {
        let result = |value| {
            let what = injected::RESULT | injected::DELAY_EXIT;
            let fields = [
                (inject_field::WHAT, u64::from(what)),
                (inject_field::RESULT, value),
                (inject_field::DELAY_EXIT, u64::MAX / 2 + 1),
                (inject_field::SIGNAL, 9),
            ];
            injection(&fields)
        };
        let mut decision = Decision::default();
        decision.add(&result(1));
        decision.add(&result(2));
        assert_eq!((decision.result, decision.delay_exit_ns, decision.signals), (1, u64::MAX, 0));
        for signal in [0, 65, u64::MAX, 64] {
            let what = (inject_field::WHAT, u64::from(injected::SIGNAL));
            decision.add(&injection(&[what, (inject_field::SIGNAL, signal)]));
        }
        assert_eq!(decision.signals, 1 << 63);
    }

    #[test]
    fn threads_count_for_themselves() {
        let mut counts = Counts::new();
        assert_eq!([counts.count(1, 7), counts.count(1, 7), counts.count(2, 7), counts.count(1, 8)], [1, 2, 1, 1]);
        counts.forget(1);
        assert_eq!([counts.count(1, 7), counts.count(2, 7)], [1, 2]);
    }
}
