//! Questions about single mappings, asked of /proc/self/maps by PROCMAP_QUERY (Linux 6.11): answered as its text is, without the
//! runtime.
//!
//! Runs on the runtime's stack, in the dispatcher, no lock held.

extern crate alloc;
use super::proc_files::show_mappings_as_made;
use super::proc_kinds::Kind;
use super::proc_reads;
use crate::context::ThreadContext;
use crate::cpu::guarded;
use crate::cpu::sys::number;
use crate::dispatch::life::hidden;
use crate::dispatch::signals::masks;
use crate::protocol::PAGE_BYTES;
use crate::sys::calls::{check, program_call, Error, EFAULT};
use core::ops::Range;

/// _IOWR('f', 17, struct procmap_query)
const PROCMAP_QUERY: u32 = 0xc068_6611;
const COVERING_OR_NEXT: u64 = 0x10;
/// All other flags: only mappings with certain rights, or of files.
const ONLY: u64 = 0x2f;
const ENOENT: i32 = 2;

/// `struct procmap_query` of linux/fs.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Query {
    size: u64,
    flags: u64,
    address: u64,
    start: u64,
    end: u64,
    rights: u64,
    page_size: u64,
    offset: u64,
    inode: u64,
    device: [u32; 2],
    name_size: u32,
    build_id_size: u32,
    name: u64,
    build_id: u64,
}

const SIZE: usize = size_of::<Query>();
const _: () = assert!(SIZE == 104);
/// Up to the address: what the kernel asks for at least.
const LEAST_SIZE: u64 = 24;

/// ioctl. `None`: another question, or of another file, and not asked yet.
pub fn query(context: &mut ThreadContext, arguments: [u64; 6]) -> Option<i64> {
    let [file, command, place, ..] = arguments;
    if command as u32 != PROCMAP_QUERY || proc_reads::kind_of(context, file & 0xffff_ffff) != Some(Kind::Mappings) {
        return None;
    }
    let Some(asked) = read(context, place) else {
        // SAFETY: the program's own call, which the kernel refuses for its structure.
        return Some(unsafe { program_call(number::IOCTL, arguments) });
    };
    show_mappings_as_made(context);
    let answer = match find(file, asked) {
        Ok(found) => found,
        Err(Error(error)) => return Some(-i64::from(error)),
    };
    Some(match write(context, place, &answer) {
        true => 0,
        false => -i64::from(EFAULT),
    })
}

/// What the program asks, what it has no room for zero; `None` where the kernel takes it for no question, or a later one.
fn read(context: &mut ThreadContext, place: u64) -> Option<Query> {
    let mut bytes = [0u8; SIZE];
    let mut size = [0u8; 8];
    masks::with_faults(context, |_| {
        if guarded::read_program(&mut size, place) != size.len() {
            return None;
        }
        let size = u64::from_le_bytes(size);
        if !(LEAST_SIZE..=SIZE as u64).contains(&size) {
            return None;
        }
        (guarded::read_program(&mut bytes[..size as usize], place) as u64 == size).then_some(())
    })?;
    // SAFETY: as many bytes, and any bytes are one.
    Some(unsafe { bytes.as_ptr().cast::<Query>().read_unaligned() })
}

fn write(context: &mut ThreadContext, place: u64, answer: &Query) -> bool {
    // SAFETY: the structure has no gaps.
    let bytes = unsafe { core::slice::from_raw_parts((&raw const *answer).cast::<u8>(), SIZE) };
    let bytes = &bytes[..answer.size as usize];
    // SAFETY: the program asked for the answer there.
    masks::with_faults(context, |_| unsafe { guarded::write_program(place, bytes) }) == bytes.len()
}

/// Asks the kernel, by the program's call.
fn ask(file: u64, query: Query) -> Result<Query, Error> {
    let mut answer = Query { size: SIZE as u64, ..query };
    let call = [file, u64::from(PROCMAP_QUERY), &raw mut answer as u64, 0, 0, 0];
    // SAFETY: writes the structure, and what the program gave room for: a name.
    check(unsafe { program_call(number::IOCTL, call) })?;
    Ok(Query { size: query.size, ..answer })
}

fn find(file: u64, asked: Query) -> Result<Query, Error> {
    let takes_next = asked.flags & COVERING_OR_NEXT != 0;
    let is_meant = |part: &Range<u64>| part.contains(&asked.address) || (takes_next && part.start > asked.address);
    let found = find_visible(file, asked, &is_meant);
    let reserved = hidden::fixed();
    if asked.flags & ONLY == 0 && is_meant(&reserved) {
        let is_first = match &found {
            Ok((part, _)) => reserved.start < part.start,
            Err(error) => *error == Error(ENOENT),
        };
        if is_first {
            let Query { size, flags, address, name, build_id, .. } = asked;
            let (start, end, page_size) = (reserved.start, reserved.end, PAGE_BYTES);
            return Ok(Query { size, flags, address, start, end, page_size, name, build_id, ..Query::default() });
        }
    }
    let (part, whole) = found?;
    // Once more with its name.
    let named = ask(file, Query { address: part.start.max(asked.address), ..asked })?;
    let is_of_file = named.inode != 0;
    let offset = named.offset + if is_of_file { part.start - whole.start } else { 0 };
    Ok(Query { address: asked.address, start: part.start, end: part.end, offset, ..named })
}

/// The first mapping, as the program is to see it, that is meant, and the kernel's one.
fn find_visible(
    file: u64,
    asked: Query,
    is_meant: &impl Fn(&Range<u64>) -> bool,
) -> Result<(Range<u64>, Range<u64>), Error> {
    let mut question = Query { name_size: 0, build_id_size: 0, name: 0, build_id: 0, ..asked };
    loop {
        let answer = ask(file, question)?;
        let whole = answer.start..answer.end;
        if let Some(part) = hidden::visible_parts(&whole).into_iter().find(is_meant) {
            return Ok((part, whole));
        }
        if asked.flags & COVERING_OR_NEXT == 0 || answer.end <= question.address {
            return Err(Error(ENOENT));
        }
        question.address = answer.end;
    }
}
