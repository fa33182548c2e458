//! Where the values of a place's captures are while they are worked out: in the thread's private block, by what translated code reaches.
//!
//! Pure. Each operation that anything asks for has a slot of eight bytes and a byte that says whether it is missing; what is bytes has room of
//! its own, and their number in the slot.

extern crate alloc;
use super::aggregates::Table;
use super::form::{Form, Kind, Operation};
use super::injections;
use crate::cpu::captured::{N_REGISTERS, N_VECTORS};
use crate::protocol::{
    capture_action, capture_context, capture_operation as op, change_field, CapturePlace, CAPTURE_NAME_BYTES,
    MAX_CALL_KINDS, MAX_CAPTURE_FIELDS, MAX_CAPTURE_TEXT, MAX_CAPTURE_TEXTS, MAX_CAPTURE_VALUES, MAX_KEPT_VALUES,
};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

const N_CHANGE_FIELDS: u64 = change_field::VALUE as u64 + 1;

/// What is done where a capture's condition holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Its fields are written down.
    Record,
    /// The thread stops.
    Stop,
    /// Its fields are added to a row: keys, then a value, if the table has some.
    Aggregate(Table),
    /// A call of that kind begins: its fields are kept until it returns.
    Open(u32),
    /// Something is done to the call that begins, which the fields say. The dispatcher works them out (evaluate.rs).
    Inject,
    /// The thread, whose call has returned, is held for so many nanoseconds as its field says.
    Delay,
    /// The thread goes on otherwise than the program has it, which the fields say.
    Change,
}

/// Whether what is asked for may be a change, or a backtrace: what carries it out says so, before anything is.
static TAKES_CHANGES: AtomicBool = AtomicBool::new(false);
static TAKES_BACKTRACES: AtomicBool = AtomicBool::new(false);

pub fn take_changes() {
    TAKES_CHANGES.store(true, Ordering::Relaxed);
}

pub fn take_backtraces() {
    TAKES_BACKTRACES.store(true, Ordering::Relaxed);
}

impl Action {
    /// What a place asks for, of such a form; `None`: there is no such action.
    fn of(place: &CapturePlace, form: &Form) -> Option<Action> {
        let n_fields = form.fields.len() as u64;
        match place.action {
            capture_action::CALL => {
                let is_kind = (1..=MAX_CALL_KINDS).contains(&u64::from(place.call_kind));
                (is_kind && n_fields <= MAX_KEPT_VALUES).then_some(Action::Open(place.call_kind))
            }
            capture_action::STOP => Some(Action::Stop),
            capture_action::INJECT => (place.call_kind == 0 && injections::are_fields(form)).then_some(Action::Inject),
            capture_action::DELAY => {
                let is_word = |field: &u16| form.kind_of(usize::from(*field)) == Kind::U64;
                let is_sound = place.call_kind != 0 && n_fields == 1 && form.fields.iter().all(is_word);
                is_sound.then_some(Action::Delay)
            }
            capture_action::CHANGE => {
                let is_word = |field: &u16| matches!(form.kind_of(usize::from(*field)), Kind::I64 | Kind::U64);
                let is_sound = n_fields == N_CHANGE_FIELDS && form.fields.iter().all(is_word);
                (is_sound && TAKES_CHANGES.load(Ordering::Relaxed)).then_some(Action::Change)
            }
            capture_action::AGGREGATE => {
                let table = Table::of(place)?;
                let has_fields = form.fields.len() == table.n_keys + usize::from(table.has_values);
                let value = form.fields.last().map(|field| form.kind_of(usize::from(*field)));
                let is_sound = has_fields && (!table.has_values || value != Some(Kind::TEXT));
                is_sound.then_some(Action::Aggregate(table))
            }
            _ => (n_fields <= MAX_CAPTURE_FIELDS).then_some(Action::Record),
        }
    }
}

/// A capture, and where its values are.
#[derive(Clone, Debug)]
pub struct Program {
    pub number: u32,
    pub action: Action,
    /// Of which kind the calls are behind which it is taken; 0: it is taken in front of an instruction.
    pub returned: u32,
    /// Whether calls that are over without having returned are told, too.
    pub tells_left: bool,
    pub form: Form,
    /// The slot of its first operation.
    pub first_slot: u32,
    /// By operation: where its bytes are, counted from the start of the texts; 0 where it is a number, or nobody asks for it.
    pub texts: Vec<u32>,
    /// By operation: whether anything asks for it.
    pub is_needed: Vec<bool>,
    /// By operation: whether it may be missing.
    pub may_miss: Vec<bool>,
    /// Whether it is made of a few integers, and reads no memory.
    pub is_plain: bool,
}

/// So many operations a capture has at most that is plain.
pub const MAX_PLAIN: usize = 16;

/// How much of a thread's room is given out.
#[derive(Clone, Copy, Default, Debug)]
pub struct Room {
    pub n_slots: u32,
    pub n_text_bytes: u32,
    n_data_bytes: u32,
}

impl Program {
    /// Lays a capture out behind what is given out of a place's `room`; `None`: that does not hold it, or it is none.
    pub fn lay_out(asked: &CapturePlace, form: Form, room: &mut Room) -> Option<Program> {
        let action = Action::of(asked, &form)?;
        let is_interpreted = action == Action::Inject;
        if !is_interpreted && form.operations.iter().any(Operation::is_interpreted) {
            return None;
        }
        if form.operations.iter().any(Operation::is_backtrace) && !TAKES_BACKTRACES.load(Ordering::Relaxed) {
            return None;
        }
        let is_needed = find_needed(&form, action != Action::Stop);
        let may_miss = find_missing(&form);
        let first_slot = room.n_slots;
        let mut end = *room;
        end.n_data_bytes += form.data.len() as u32;
        let mut texts = alloc::vec![0; form.operations.len()];
        if !is_interpreted {
            end.n_slots += form.operations.len() as u32;
            for (index, one) in form.operations.iter().enumerate().filter(|(index, _)| is_needed[*index]) {
                texts[index] = end.n_text_bytes;
                end.n_text_bytes += text_bytes(one);
            }
        }
        let holds = |count: u32, limit: u64| u64::from(count) <= limit;
        if !holds(end.n_slots, MAX_CAPTURE_VALUES)
            || !holds(end.n_text_bytes, MAX_CAPTURE_TEXTS)
            || !holds(end.n_data_bytes, MAX_CAPTURE_TEXT)
        {
            return None;
        }
        *room = end;
        let is_plain = form.operations.len() <= MAX_PLAIN && form.operations.iter().all(is_plain);
        let returned = if matches!(action, Action::Open(_)) { 0 } else { asked.call_kind };
        let tells_left = asked.tells_left != 0;
        Some(Program {
            number: asked.number,
            action,
            returned,
            tells_left,
            form,
            first_slot,
            texts,
            is_needed,
            may_miss,
            is_plain,
        })
    }

    /// The slot of an operation's value.
    pub fn slot(&self, operation: usize) -> u32 {
        self.first_slot + operation as u32
    }

    /// The operations that something asks for, in their order.
    pub fn wanted(&self) -> impl Iterator<Item = (usize, &Operation)> {
        self.form.operations.iter().enumerate().filter(|(index, _)| self.is_needed[*index])
    }

    /// Those of them that translated code does: none where only the dispatcher works the capture out.
    pub fn needed(&self) -> impl Iterator<Item = (usize, &Operation)> {
        self.wanted().filter(|_| self.action != Action::Inject)
    }

    /// How many bytes an operation's value may have.
    pub fn text_room(&self, operation: usize) -> usize {
        text_bytes(&self.form.operations[operation]) as usize
    }

    /// Whether a field is bytes.
    pub fn is_text_field(&self, field: usize) -> bool {
        self.form.fields.get(field).is_some_and(|operation| self.form.kind_of((*operation).into()) == Kind::TEXT)
    }

    /// Whether it reads the program's memory.
    pub fn reads_memory(&self) -> bool {
        self.needed()
            .any(|(_, one)| matches!(one.code, op::LOAD | op::STRING | op::BYTES | op::WORDS) || is_thread_pointer(one))
    }

    /// Whether nothing that it takes is bytes.
    pub fn takes_numbers(&self) -> bool {
        (0..self.form.fields.len()).all(|field| !self.is_text_field(field))
    }

    /// Whether what is added to rows of a table, beside their keys, is a floating-point number.
    pub fn has_float_values(&self, table: &Table) -> bool {
        let mut values = self.form.fields.iter().skip(table.n_keys);
        values.any(|field| self.form.kind_of(usize::from(*field)).is_float())
    }

    /// The operations that the dispatcher does before the others are done.
    pub fn told(&self) -> impl Iterator<Item = (usize, &Operation)> {
        self.needed().filter(|(_, one)| is_told(one))
    }
}

/// Whether an operation makes an integer of integers, registers, what was kept, and what is known of the thread.
fn is_plain(one: &Operation) -> bool {
    let reads =
        [op::LOAD, op::STRING, op::BYTES, op::WORDS, op::LITERAL, op::TEXT_EQUAL, op::TEXT_MATCH, op::DESCRIPTOR_PATH];
    let is_bytes =
        one.kind == Kind::TEXT || one.code == op::CONTEXT && one.immediate == u64::from(capture_context::COMM);
    !is_bytes && !reads.contains(&one.code) && !is_thread_pointer(one) && (!one.kind.is_float() || one.code == op::KEPT)
}

/// Whether an operation is what the dispatcher has to find out: the thread's name, the process, the time, bytes that were kept.
pub fn is_told(one: &Operation) -> bool {
    let what = [capture_context::COMM, capture_context::PID, capture_context::TIME];
    one.code == op::CONTEXT && what.map(u64::from).contains(&one.immediate) || one.is_kept() && one.kind == Kind::TEXT
}

/// Whether an operation is whether the thread comes from an instruction that is marked.
pub fn is_behind(one: &Operation) -> bool {
    one.code == op::CONTEXT && one.immediate == u64::from(capture_context::BEHIND)
}

/// Whether an operation is what is done to the call that begins.
pub fn is_injected(one: &Operation) -> bool {
    one.code == op::CONTEXT && one.immediate == u64::from(capture_context::INJECTED)
}

/// Whether an operation is how long the thread is to be held when the call has returned that begins.
pub fn is_delay_exit(one: &Operation) -> bool {
    one.code == op::CONTEXT && one.immediate == u64::from(capture_context::DELAY_EXIT)
}

/// Whether an operation is how long a call took.
pub fn is_duration(one: &Operation) -> bool {
    one.code == op::CONTEXT && one.immediate == u64::from(capture_context::DURATION)
}

/// Whether an operation is which processor the thread is on.
pub fn is_processor(one: &Operation) -> bool {
    one.code == op::CONTEXT && one.immediate == u64::from(capture_context::CPU)
}

/// Whether an operation is when a call began, or where the stack was then.
pub fn is_of_call(one: &Operation) -> bool {
    let what = [capture_context::BEGAN, capture_context::FRAME];
    one.code == op::CONTEXT && what.map(u64::from).contains(&one.immediate)
}

/// Whether an operation is the thread pointer, which is read out of the program's memory.
pub fn is_thread_pointer(one: &Operation) -> bool {
    one.code == op::CONTEXT && one.immediate == u64::from(capture_context::THREAD_POINTER)
}

/// Room for a backtrace of so many frames: what it begins with, and where the last one is.
fn backtrace_bytes(n_frames: u64) -> u32 {
    const WORD_BYTES: u32 = 8;
    const N_OTHERS: u32 = 3;
    WORD_BYTES * (n_frames as u32 + N_OTHERS)
}

/// How many bytes of room an operation's value takes at most, beside its slot.
fn text_bytes(one: &Operation) -> u32 {
    match one.code {
        // Words of it are compared, and the program may have alignment checks on.
        op::STRING | op::BYTES | op::WORDS => (one.immediate as u32).next_multiple_of(8),
        op::CONTEXT if one.kind == Kind::TEXT => CAPTURE_NAME_BYTES as u32,
        op::BACKTRACE => backtrace_bytes(one.immediate),
        op::KEPT => (one.kept().1 as u32).next_multiple_of(8),
        _ => 0,
    }
}

/// Which operations a condition asks for, and fields if they are taken.
fn find_needed(form: &Form, takes_fields: bool) -> Vec<bool> {
    let mut is_needed = alloc::vec![false; form.operations.len()];
    let fields = form.fields.iter().filter(|_| takes_fields);
    for root in fields.chain(form.condition.iter()) {
        is_needed[usize::from(*root)] = true;
    }
    // What an operation is made of comes before it.
    for (index, one) in form.operations.iter().enumerate().rev() {
        if is_needed[index] {
            one.operands().for_each(|operand| is_needed[operand] = true);
        }
    }
    is_needed
}

/// Which operations may be missing.
fn find_missing(form: &Form) -> Vec<bool> {
    let mut may_miss: Vec<bool> = Vec::with_capacity(form.operations.len());
    for one in &form.operations {
        let is_of_missing = one.operands().any(|operand| may_miss[operand]);
        let is_itself = match one.code {
            op::LOAD | op::STRING | op::BYTES | op::WORDS | op::KEPT | op::DESCRIPTOR_PATH => true,
            op::REGISTER => one.immediate >= u64::from(N_REGISTERS),
            op::VECTOR => one.immediate >= u64::from(N_VECTORS),
            op::DIVIDE | op::REMAINDER => !one.kind.is_float(),
            op::CONTEXT => {
                let is_unknown = one.immediate == u64::from(capture_context::DEPTH);
                is_unknown || is_thread_pointer(one) || is_duration(one) || is_of_call(one)
            }
            _ => false,
        };
        may_miss.push(is_itself || is_of_missing);
    }
    may_miss
}

#[cfg(test)]
mod tests {
    use super::super::form::samples::operation;
    use super::*;

    fn form() -> Form {
        Form {
            operations: [
                operation(op::REGISTER, Kind::U64, 0, 0, 7),
                operation(op::STRING, Kind::TEXT, 0, 0, 100),
                operation(op::CONSTANT, Kind::U64, 0, 0, 5),
                operation(op::LESS, Kind::U64, 0, 2, 0),
                operation(op::BYTES, Kind::TEXT, 0, 2, 10),
                operation(op::CONSTANT, Kind::I32, 0, 0, 5),
            ]
            .to_vec(),
            fields: [4, 1].to_vec(),
            condition: Some(3),
            data: Vec::new(),
        }
    }

    fn asked(number: u32, action: u32) -> CapturePlace {
        // SAFETY: all zeros are one.
        CapturePlace { number, action, ..unsafe { core::mem::zeroed() } }
    }

    #[test]
    fn what_is_added_up_has_keys_and_a_number() {
        let of = |table_keys: u8, table_has_values: u8, form: Form| {
            let asked = CapturePlace { table_keys, table_has_values, ..asked(1, capture_action::AGGREGATE) };
            Program::lay_out(&asked, form, &mut Room::default()).is_some()
        };
        let texts_last = Form { fields: [0, 1].to_vec(), ..form() };
        let number_last = Form { fields: [1, 0].to_vec(), ..form() };
        assert!(of(2, 0, texts_last.clone()) && of(1, 1, number_last.clone()));
        assert!(!of(1, 1, texts_last) && !of(2, 1, number_last.clone()) && !of(1, 0, number_last));
    }

    #[test]
    fn a_delay_is_one_number_behind_a_call() {
        let of = |call_kind: u32, fields: &[u16]| {
            let form = Form { fields: fields.to_vec(), ..form() };
            let asked = CapturePlace { call_kind, ..asked(1, capture_action::DELAY) };
            Program::lay_out(&asked, form, &mut Room::default()).is_some()
        };
        assert!(of(1, &[0]) && !of(0, &[0]) && !of(1, &[1]) && !of(1, &[5]) && !of(1, &[0, 0]) && !of(1, &[]));
    }

    #[test]
    fn a_change_is_three_numbers_and_needs_somebody_who_carries_it_out() {
        let of = |fields: &[u16]| {
            let form = Form { fields: fields.to_vec(), ..form() };
            Program::lay_out(&asked(1, capture_action::CHANGE), form, &mut Room::default()).is_some()
        };
        assert!(!of(&[0, 0, 0]));
        take_changes();
        assert!(of(&[0, 0, 0]) && !of(&[0, 0]) && !of(&[0, 0, 0, 0]) && !of(&[0, 0, 1]) && !of(&[5, 0, 0]));
    }

    #[test]
    fn what_nobody_asks_for_is_left_out() {
        let mut room = Room::default();
        let records = Program::lay_out(&asked(1, capture_action::RECORD), form(), &mut room).unwrap();
        assert_eq!(records.is_needed, [true, true, true, true, true, false]);
        assert_eq!((records.texts[1], records.texts[4], room.n_text_bytes), (0, 104, 120));
        let stops = Program::lay_out(&asked(2, capture_action::STOP), form(), &mut room).unwrap();
        assert_eq!(stops.is_needed, [true, false, true, true, false, false]);
        assert!(records.reads_memory() && !stops.reads_memory());
        assert_eq!((stops.slot(0), room.n_slots), (6, 12));
    }

    #[test]
    fn room_ends() {
        let mut room = Room { n_slots: MAX_CAPTURE_VALUES as u32 - 5, ..Room::default() };
        assert!(Program::lay_out(&asked(1, capture_action::RECORD), form(), &mut room).is_none());
        assert_eq!(room.n_slots, MAX_CAPTURE_VALUES as u32 - 5);
    }
}
