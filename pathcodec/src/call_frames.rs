//! Makes rules of what unwinders read: .eh_frame, as the Linux Standard Base (Core, 10.6) and DWARF 5 (6.4) have it.
//!
//! A file may hold nonsense: nothing is read behind the section, each record takes time by its size alone, and what can't be read has no
//! rules, or asks. In the controller `binary/frame_rules.py` reads the same, of one address.

use crate::frame_rules::{Kind, Rule, Saved};

/// Numbers of registers, as DWARF has them for x86-64.
const FRAME_POINTER: u64 = 6;
const STACK_POINTER: u64 = 7;
const RETURN_ADDRESS: u64 = 16;
/// Where the kernel keeps registers for a handler's return, from the stack pointer on (struct ucontext).
pub const SIGNAL_FRAME_POINTER: i64 = 120;
pub const SIGNAL_STACK_POINTER: i64 = 160;
pub const SIGNAL_PC: i64 = 168;

const MAX_KEPT: usize = 16;
const PC_RELATIVE: u8 = 0x10;

/// A rule that holds from an address on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    pub address: u64,
    pub rule: Rule,
}

/// Gives `take` the rules of all functions of which a section tells, linked at `address`: one behind the other, and behind each function
/// `Rule::NOTHING`. `false`: it would have no more of them.
pub fn read_rules(section: &[u8], address: u64, mut take: impl FnMut(Row) -> bool) -> bool {
    let mut at = 0;
    let mut common: Option<(usize, Option<Common>)> = None;
    while let Some(record) = Record::at(section, at) {
        at = record.end;
        // A record of nothing ends a file's part of the section.
        if record.start == record.end {
            continue;
        }
        let mut reader = Reader { bytes: section, at: record.start, end: record.end };
        let Some(distance) = reader.word(4) else { continue };
        let Some(start) = record.start.checked_sub(distance as usize).filter(|_| distance != 0) else { continue };
        if common.as_ref().is_none_or(|(known, _)| *known != start) {
            common = Some((start, Common::read(section, start)));
        }
        let Some((_, Some(common))) = &common else { continue };
        if !read_function(reader, common, address, &mut take) {
            return false;
        }
    }
    true
}

/// Where a record's content is.
struct Record {
    start: usize,
    end: usize,
}

impl Record {
    fn at(section: &[u8], at: usize) -> Option<Record> {
        let mut reader = Reader { bytes: section, at, end: section.len() };
        let mut size = reader.word(4)?;
        if size == 0xffff_ffff {
            size = reader.word(8)?;
        }
        let end = reader.at.checked_add(usize::try_from(size).ok()?).filter(|end| *end <= section.len())?;
        Some(Record { start: reader.at, end })
    }
}

/// `false`: no more is wanted.
fn read_function(mut reader: Reader, common: &Common, address: u64, take: &mut impl FnMut(Row) -> bool) -> bool {
    let Some(first) = reader.address(common.encoding, address) else { return true };
    let Some(size) = reader.address(common.encoding & 0x0f, 0).filter(|size| *size != 0) else { return true };
    let Some(end) = first.checked_add(size).filter(|_| first != 0) else { return true };
    if common.has_data && reader.number().and_then(|size| reader.skip(size)).is_none() {
        return true;
    }
    let mut state = State::new(common);
    let mut nowhere = |_: Row| true;
    let is_known = state.run(common.instructions, None, &mut nowhere).is_some();
    state.initial = state.now;
    state.place = first;
    let mut last: Option<Rule> = None;
    let mut is_wanted = true;
    let mut give = |row: Row| {
        // Most changes are of registers that nobody asks for.
        if is_wanted && last != Some(row.rule) && row.address < end {
            last = Some(row.rule);
            is_wanted = take(row);
        }
        is_wanted
    };
    if is_known && state.run(reader, Some(end), &mut give).is_some() {
        give(Row { address: state.place, rule: state.rule() });
    } else {
        // What comes behind that is not known.
        give(Row { address: state.place.max(first), rule: Rule::ASK });
    }
    is_wanted && take(Row { address: end, rule: Rule::NOTHING })
}

/// What the records of several functions share (a CIE).
struct Common<'s> {
    code_alignment: u64,
    data_alignment: i64,
    return_column: u64,
    encoding: u8,
    has_data: bool,
    is_signal: bool,
    instructions: Reader<'s>,
}

impl<'s> Common<'s> {
    /// That of the record at `at`.
    fn read(section: &'s [u8], at: usize) -> Option<Common<'s>> {
        let record = Record::at(section, at)?;
        let mut reader = Reader { bytes: section, at: record.start, end: record.end };
        let version = reader.word(4).filter(|id| *id == 0).and_then(|_| reader.word(1))?;
        if version != 1 && version != 3 {
            return None;
        }
        let name = reader.text()?;
        let mut common = Common {
            code_alignment: reader.number()?,
            data_alignment: reader.signed_number()?,
            return_column: if version == 1 { reader.word(1)? } else { reader.number()? },
            encoding: 0,
            has_data: name.first() == Some(&b'z'),
            is_signal: false,
            instructions: reader,
        };
        if common.has_data {
            let size = reader.number()?;
            let end = reader.at.checked_add(usize::try_from(size).ok()?).filter(|end| *end <= reader.end)?;
            for letter in &name[1..] {
                match letter {
                    b'R' => common.encoding = reader.word(1)? as u8,
                    b'L' => reader.skip(1)?,
                    b'P' => {
                        let form = reader.word(1)? as u8;
                        reader.skip(u64::from(format_of(form)?.0))?;
                    }
                    b'S' => common.is_signal = true,
                    b'B' => {}
                    _ => return None,
                }
            }
            reader.at = end;
        } else if !name.is_empty() {
            return None;
        }
        common.instructions = reader;
        Some(common)
    }
}

/// Bytes of a stored address, and whether it has a sign (DW_EH_PE_*).
fn format_of(encoding: u8) -> Option<(u8, bool)> {
    Some(match encoding & 0x0f {
        0x00 | 0x04 => (8, false),
        0x02 => (2, false),
        0x03 => (4, false),
        0x0a => (2, true),
        0x0b => (4, true),
        0x0c => (8, true),
        _ => return None,
    })
}

/// Where the frame is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    Register(u64, i64),
    Stored(i64),
    Stub(i64),
    /// Where the stack pointer was that a signal came at.
    Interrupted,
    Other,
}

/// Where the caller's value of a register is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    Unchanged,
    Undefined,
    FromFrame(i64),
    /// In memory, so far from a register's value.
    At(u64, i64),
    Other,
}

#[derive(Clone, Copy)]
struct Registers {
    frame: Frame,
    frame_pointer: Value,
    return_address: Value,
}

struct State<'c> {
    common: &'c Common<'c>,
    place: u64,
    now: Registers,
    initial: Registers,
    kept: [Registers; MAX_KEPT],
    n_kept: usize,
}

impl<'c> State<'c> {
    fn new(common: &'c Common<'c>) -> State<'c> {
        let none = Registers { frame: Frame::Other, frame_pointer: Value::Unchanged, return_address: Value::Unchanged };
        State { common, place: 0, now: none, initial: none, kept: [none; MAX_KEPT], n_kept: 0 }
    }

    fn rule(&self) -> Rule {
        let Registers { frame, frame_pointer, return_address } = self.now;
        if self.common.return_column != RETURN_ADDRESS {
            return Rule::ASK;
        }
        if self.common.is_signal {
            let is_usual = frame == Frame::Interrupted
                && frame_pointer == Value::At(STACK_POINTER, SIGNAL_FRAME_POINTER)
                && return_address == Value::At(STACK_POINTER, SIGNAL_PC);
            return if is_usual { Rule::SIGNAL } else { Rule::ASK };
        }
        match return_address {
            Value::Undefined | Value::Unchanged => return Rule::OUTERMOST,
            Value::FromFrame(-8) => {}
            _ => return Rule::ASK,
        }
        let saved = match frame_pointer {
            Value::Unchanged => Saved::Same,
            Value::FromFrame(offset) => Rule::saved_at(offset),
            Value::At(FRAME_POINTER, 0) => Saved::There,
            _ => Saved::Lost,
        };
        match frame {
            Frame::Register(STACK_POINTER, offset) => Rule::new(Kind::Stack, offset, saved),
            Frame::Register(FRAME_POINTER, offset) => Rule::new(Kind::Frame, offset, saved),
            Frame::Stored(offset) => Rule::new(Kind::Stored, offset, saved),
            Frame::Stub(offset) => Rule::new(Kind::Stub, offset, saved),
            _ => Rule::ASK,
        }
    }

    /// Does the instructions, and gives the rules that hold up to each new place, up to `end`. `None`: one can't be read, or no more is wanted.
    fn run(&mut self, mut reader: Reader, end: Option<u64>, give: &mut impl FnMut(Row) -> bool) -> Option<()> {
        while reader.at < reader.end {
            let opcode = reader.word(1)? as u8;
            let operand = u64::from(opcode & 0x3f);
            let step = match (opcode >> 6, opcode) {
                (1, _) => operand,
                (0, 0x02..=0x04) => reader.word(1 << (opcode - 2))?,
                _ => {
                    self.change(&mut reader, opcode, operand)?;
                    continue;
                }
            };
            let place = self.place.checked_add(step.checked_mul(self.common.code_alignment)?)?;
            if place != self.place {
                if !give(Row { address: self.place, rule: self.rule() }) {
                    return None;
                }
                self.place = place;
                if end.is_some_and(|end| place >= end) {
                    return Some(());
                }
            }
        }
        Some(())
    }

    fn change(&mut self, reader: &mut Reader, opcode: u8, operand: u64) -> Option<()> {
        let alignment = self.common.data_alignment;
        match (opcode >> 6, opcode) {
            (2, _) => {
                let offset = reader.number()?.cast_signed().checked_mul(alignment)?;
                self.set(operand, Value::FromFrame(offset));
            }
            (3, _) => self.restore(operand),
            (_, 0x00) => {}
            (_, 0x0a) => {
                *self.kept.get_mut(self.n_kept)? = self.now;
                self.n_kept += 1;
            }
            (_, 0x0b) => {
                self.n_kept = self.n_kept.checked_sub(1)?;
                self.now = *self.kept.get(self.n_kept)?;
            }
            (_, 0x0c) => self.now.frame = Frame::Register(reader.number()?, reader.number()?.cast_signed()),
            (_, 0x0d) => self.now.frame = Frame::Register(reader.number()?, self.offset()),
            (_, 0x0e) => self.now.frame = Frame::Register(self.register(), reader.number()?.cast_signed()),
            (_, 0x0f) => self.now.frame = frame_of(reader.block()?),
            (_, 0x12) => {
                let register = reader.number()?;
                self.now.frame = Frame::Register(register, reader.signed_number()?.checked_mul(alignment)?);
            }
            (_, 0x13) => {
                let offset = reader.signed_number()?.checked_mul(alignment)?;
                self.now.frame = Frame::Register(self.register(), offset);
            }
            (_, 0x2e) => {
                reader.number()?;
            }
            _ => {
                let register = reader.number()?;
                self.change_register(reader, opcode, register)?;
            }
        }
        Some(())
    }

    fn change_register(&mut self, reader: &mut Reader, opcode: u8, register: u64) -> Option<()> {
        let alignment = self.common.data_alignment;
        let value = match opcode {
            0x05 => Value::FromFrame(reader.number()?.cast_signed().checked_mul(alignment)?),
            0x06 => {
                self.restore(register);
                return Some(());
            }
            0x07 => Value::Undefined,
            0x08 => Value::Unchanged,
            0x09 | 0x14 => {
                reader.number()?;
                Value::Other
            }
            0x10 => value_of(reader.block()?),
            0x11 => Value::FromFrame(reader.signed_number()?.checked_mul(alignment)?),
            0x15 => {
                reader.signed_number()?;
                Value::Other
            }
            0x16 => {
                reader.block()?;
                Value::Other
            }
            _ => return None,
        };
        self.set(register, value);
        Some(())
    }

    fn register(&self) -> u64 {
        if let Frame::Register(register, _) = self.now.frame {
            register
        } else {
            0
        }
    }

    fn offset(&self) -> i64 {
        if let Frame::Register(_, offset) = self.now.frame {
            offset
        } else {
            0
        }
    }

    fn set(&mut self, register: u64, value: Value) {
        match register {
            FRAME_POINTER => self.now.frame_pointer = value,
            RETURN_ADDRESS => self.now.return_address = value,
            _ => {}
        }
    }

    fn restore(&mut self, register: u64) {
        match register {
            FRAME_POINTER => self.now.frame_pointer = self.initial.frame_pointer,
            RETURN_ADDRESS => self.now.return_address = self.initial.return_address,
            _ => {}
        }
    }
}

/// DW_OP_breg0, and what comes behind it in expressions.
const REGISTER: u8 = 0x70;
const LOAD: u8 = 0x06;

/// The register that an expression begins with, and what is added to it; what comes behind.
fn begin(code: Reader) -> Option<(u64, i64, Reader)> {
    let mut reader = code;
    let register = (reader.word(1)? as u8).checked_sub(REGISTER).filter(|register| *register < 32)?;
    let offset = reader.signed_number()?;
    Some((register.into(), offset, reader))
}

fn frame_of(code: Reader) -> Frame {
    let Some((register, offset, rest)) = begin(code) else { return Frame::Other };
    match (register, rest.rest()) {
        (FRAME_POINTER, [LOAD]) => Frame::Stored(offset),
        (STACK_POINTER, [LOAD]) if offset == SIGNAL_STACK_POINTER => Frame::Interrupted,
        // rip + 0 & 15 >= N, times 8, and that: as linkers have it for their stubs.
        (STACK_POINTER, [0x80, 0, 0x3f, 0x1a, literal @ 0x30..=0x3f, 0x2a, 0x33, 0x24, 0x22]) if offset == 8 => {
            Frame::Stub(i64::from(literal - 0x30))
        }
        (_, []) => Frame::Register(register, offset),
        _ => Frame::Other,
    }
}

fn value_of(code: Reader) -> Value {
    match begin(code) {
        Some((register, offset, rest)) if rest.rest().is_empty() => Value::At(register, offset),
        _ => Value::Other,
    }
}

/// Reads numbers, as far as there are bytes.
#[derive(Clone, Copy)]
struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
    end: usize,
}

impl<'b> Reader<'b> {
    fn rest(&self) -> &'b [u8] {
        self.bytes.get(self.at..self.end).unwrap_or_default()
    }

    fn skip(&mut self, size: u64) -> Option<()> {
        self.at = self.at.checked_add(usize::try_from(size).ok()?).filter(|at| *at <= self.end)?;
        Some(())
    }

    fn word(&mut self, size: usize) -> Option<u64> {
        let mut word = [0; 8];
        word.get_mut(..size)?.copy_from_slice(self.rest().get(..size)?);
        self.at += size;
        Some(u64::from_le_bytes(word))
    }

    /// ULEB128; what lies above 64 bits is nonsense.
    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.word(1)?;
            value |= (byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// SLEB128.
    fn signed_number(&mut self) -> Option<i64> {
        let before = self.at;
        let value = self.number()?.cast_signed();
        let n_bits = 7 * (self.at - before) as u32;
        let n_above = 64u32.saturating_sub(n_bits);
        Some(value << n_above >> n_above)
    }

    /// As many bytes as a number in front of them says.
    fn block(&mut self) -> Option<Reader<'b>> {
        let size = self.number()?;
        let at = self.at;
        self.skip(size)?;
        Some(Reader { bytes: self.bytes, at, end: self.at })
    }

    /// The bytes up to a zero.
    fn text(&mut self) -> Option<&'b [u8]> {
        let rest = self.rest();
        let size = rest.iter().position(|byte| *byte == 0)?;
        self.at += size + 1;
        rest.get(..size)
    }

    /// A stored address; `address` is where the bytes are linked to.
    fn address(&mut self, encoding: u8, address: u64) -> Option<u64> {
        let (size, has_sign) = format_of(encoding)?;
        let relative = encoding & 0x70;
        if relative != 0 && relative != PC_RELATIVE || encoding & 0x80 != 0 {
            return None;
        }
        let here = address.wrapping_add(self.at as u64);
        let mut value = self.word(size.into())?;
        if has_sign {
            let n_above = 64 - 8 * u32::from(size);
            value = (value.cast_signed() << n_above >> n_above).cast_unsigned();
        }
        Some(if relative == PC_RELATIVE { value.wrapping_add(here) } else { value })
    }
}

#[cfg(test)]
#[path = "tests/call_frames.rs"]
mod tests;
