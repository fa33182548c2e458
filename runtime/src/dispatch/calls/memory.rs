//! System calls that change which memory is code.
//!
//! The call is made while the engine's lock is held, so that nobody decodes what is about to go, if it can't wait for
//! another thread of the program.

extern crate alloc;
use super::mappings::page_end;
use super::mappings::{find_mapping, Mapping};
use super::{aliases, locks};
use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::context::ThreadContext;
use crate::cpu::sys::clock::ticks;
use crate::cpu::sys::kernel::USER_END;
use crate::cpu::sys::number;
use crate::dispatch::life::dumpable::while_shown;
use crate::dispatch::life::{hidden, room};
use crate::instrument::{Engine, ENGINE};
use crate::protocol::{event_kind, record_kind, request_kind, ImageRecord, UnmapRecord, MAX_PATH_BYTES, PAGE_BYTES};
use crate::sys::calls::{check, program_call, syscall, EAGAIN, EFAULT, ENOMEM};
use crate::sys::filter;
use crate::sys::kernel::{MAP_ANONYMOUS, MAP_FIXED, MREMAP_FIXED, PROT_EXEC, PROT_READ, PROT_WRITE};
use crate::sys::lock::Guard;
use crate::sys::spare_pages;
use crate::thread::registry::{write_event, writer_of};
use core::ops::Range;

/// What was mapped from `start` up to `end` is gone, code and all.
pub fn forget(engine: &mut Engine, writer: &RingWriter, start: u64, end: u64) {
    let [first, behind] = [start, end].map(AppPc::from_raw);
    engine.aliases.remove(first, behind);
    engine.not_inherited.remove(first, behind);
    forget_code(engine, writer, start, end);
}

/// Code from `start` up to `end` is gone.
fn forget_code(engine: &mut Engine, writer: &RingWriter, start: u64, end: u64) {
    let [first, behind] = [start, end].map(AppPc::from_raw);
    if !engine.ranges.intersects(first, behind) {
        return;
    }
    engine.invalidate(writer, first, behind);
    engine.ranges.remove(first, behind);
    engine.trust.kernels.remove(first, behind);
    let record = UnmapRecord {
        kind: record_kind::UNMAP,
        continuations: 0,
        tid: writer.tid,
        start,
        size_bytes: end - start,
        tsc: ticks(),
        reserved: [0; 32],
    };
    writer.write(&record, &[]);
}

/// Makes a call of the program's while the engine is held. Where it may wait for a thread that answers it (seccomp's
/// listeners), the engine is let go meanwhile: what others come to see of the change is theirs to see natively, too.
/// The memory from `start` up to `end` has the protection that the program gave it.
pub fn call_holding(
    mut engine: Guard<'static, Engine>,
    writer: &RingWriter,
    call: u64,
    arguments: [u64; 6],
    [start, end]: [u64; 2],
) -> (i64, Guard<'static, Engine>) {
    if filter::may_wait() {
        engine.suspend_trust(writer);
        drop(engine);
        // SAFETY: the program's own call.
        let result = unsafe { program_call(call, arguments) };
        let mut engine = ENGINE.lock();
        engine.resume_trust();
        return (result, engine);
    }
    engine.end_trust(writer, AppPc::from_raw(start), AppPc::from_raw(end), false);
    // SAFETY: the program's own call.
    (unsafe { program_call(call, arguments) }, engine)
}

/// mmap: what it replaces is gone; what is executable is known, and told to the controller.
pub fn map(context: &ThreadContext, arguments: [u64; 6]) -> i64 {
    let [address, size, protection, flags, descriptor, offset] = arguments;
    spare_pages::note_call();
    let is_executable = protection & PROT_EXEC != 0;
    let replaces = flags & MAP_FIXED != 0;
    let is_alias = aliases::is_alias(protection, flags, descriptor);
    let wanted = address..page_end(address, size);
    let is_in_way = is_place(&wanted) && hidden::is_within(&wanted);
    if !locks::may_lock(size) {
        return -i64::from(EAGAIN);
    }
    if !is_executable && !replaces && !is_alias && !is_in_way {
        // SAFETY: the program's own call; it can only take free memory.
        let result = unsafe { program_call(number::MMAP, arguments) };
        locks::cover(result, size);
        return result;
    }
    let mut engine = ENGINE.lock();
    let writer = writer_of(context, engine.shared);
    if is_in_way && replaces && !room::make(&mut engine, &writer, context, wanted.clone()) {
        return -i64::from(ENOMEM);
    } else if is_in_way && !replaces {
        room::make_if_seldom(&mut engine, &writer, context, wanted);
    }
    let replaced = if replaces { [address, page_end(address, size)] } else { [0; 2] };
    let (result, mut engine) = call_holding(engine, &writer, number::MMAP, arguments, replaced);
    let Ok(start) = check(result) else {
        return result;
    };
    if replaces && size != 0 {
        forget(&mut engine, &writer, address, page_end(address, size));
    }
    let end = page_end(start, size);
    locks::cover(result, size);
    aliases::note_mapping(&mut engine, start, end, is_alias);
    if is_executable {
        aliases::insert_code(&mut engine, start, end, protection);
        let file = if flags & MAP_ANONYMOUS != 0 { None } else { Some((descriptor, offset)) };
        let tsc = ticks();
        drop(engine);
        tell_image(&writer, start, end, protection, file, tsc);
    }
    result
}

/// Writes an image record, and asks the controller which part of it is to be recorded. `tsc` was read while the engine's
/// lock was held: a fork's child takes over what was told before it.
fn tell_image(writer: &RingWriter, start: u64, end: u64, protection: u64, file: Option<(u64, u64)>, tsc: u64) {
    let mut path = alloc::vec![0u8; MAX_PATH_BYTES as usize];
    let (mut device, mut inode, mut length, mut file_offset) = (0, 0, 0, 0);
    if let Some((descriptor, offset)) = file {
        file_offset = offset;
        let mut stat = [0u64; 18];
        // SAFETY: fstat writes struct stat, 144 bytes: st_dev and st_ino come first.
        if check(unsafe { syscall(number::FSTAT, [descriptor, stat.as_mut_ptr() as u64, 0, 0, 0, 0]) }).is_ok() {
            (device, inode) = (stat[0], stat[1]);
        }
        let link = descriptor_link(descriptor as u32);
        let call = [link.as_ptr() as u64, path.as_mut_ptr() as u64, path.len() as u64, 0, 0, 0];
        // SAFETY: reads the name, writes at most the buffer.
        length = check(unsafe { syscall(number::READLINK, call) }).unwrap_or(0) as usize;
    }
    let record = ImageRecord {
        kind: record_kind::IMAGE,
        continuations: length.div_ceil(60) as u16,
        tid: writer.tid,
        start,
        size_bytes: end - start,
        tsc,
        file_offset,
        device,
        inode,
        protection: protection as u32,
        path_bytes: length as u32,
    };
    writer.write(&record, &path[..length.min(path.len())]);
    if writer.shared.asks_about_images() {
        while_shown(|| writer.request(request_kind::IMAGE_FILTERS, [start, end, file_offset, 0]));
    }
}

/// "/proc/self/fd/N", zero terminated.
pub fn descriptor_link(descriptor: u32) -> [u8; 32] {
    let mut name = [0u8; 32];
    let prefix = b"/proc/self/fd/";
    name[..prefix.len()].copy_from_slice(prefix);
    let mut digits = [0u8; 10];
    let mut n = 0;
    let mut rest = descriptor;
    loop {
        digits[n] = b'0' + (rest % 10) as u8;
        n += 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    for i in 0..n {
        name[prefix.len() + i] = digits[n - 1 - i];
    }
    name
}

/// munmap.
pub fn unmap(context: &ThreadContext, arguments: [u64; 6]) -> i64 {
    let [start, size, ..] = arguments;
    let mut engine = ENGINE.lock();
    let writer = writer_of(context, engine.shared);
    let end = page_end(start, size);
    if !is_place(&(start..end)) || !hidden::is_within(&(start..end)) {
        let (result, mut engine) = call_holding(engine, &writer, number::MUNMAP, arguments, [start, end]);
        if result == 0 {
            forget(&mut engine, &writer, start, end);
        }
        return result;
    }
    // Where nothing is mapped there is nothing to do.
    for part in hidden::visible_parts(&(start..end)) {
        let arguments = [part.start, part.end - part.start, 0, 0, 0, 0];
        let (result, held) = call_holding(engine, &writer, number::MUNMAP, arguments, [part.start, part.end]);
        engine = held;
        if result != 0 {
            return result;
        }
        forget(&mut engine, &writer, part.start, part.end);
    }
    0
}

/// Whether a program's memory can be there, as a call names it.
pub fn is_place(range: &Range<u64>) -> bool {
    range.start.is_multiple_of(PAGE_BYTES) && range.start < range.end && range.end <= USER_END
}

/// mprotect and pkey_mprotect: code that may be written may change; code that may not run is gone.
pub fn protect(context: &ThreadContext, call: u64, arguments: [u64; 6]) -> i64 {
    let [start, size, protection, ..] = arguments;
    spare_pages::note_call();
    let end = page_end(start, size);
    if is_place(&(start..end)) && hidden::is_within(&(start..end)) {
        // As far as something is mapped natively.
        let first = hidden::visible_parts(&(start..end)).first().filter(|part| part.start == start).cloned();
        let mut arguments = arguments;
        let result = first.map_or(0, |part| {
            arguments[1] = part.end - part.start;
            protect(context, call, arguments)
        });
        return if result == 0 { -i64::from(ENOMEM) } else { result };
    }
    let engine = ENGINE.lock();
    let is_executable = protection & PROT_EXEC != 0;
    let [first, behind] = [start, end].map(AppPc::from_raw);
    if !is_executable && !engine.ranges.intersects(first, behind) {
        drop(engine);
        // SAFETY: the program's own call.
        return unsafe { program_call(call, arguments) };
    }
    let writer = writer_of(context, engine.shared);
    let (result, mut engine) = call_holding(engine, &writer, call, arguments, [start, end]);
    if check(result).is_err() {
        return result;
    }
    let was_executable = engine.ranges.next_from(first, behind).is_some_and(|r| r.start <= first && r.end >= behind);
    if is_executable && was_executable && protection & PROT_WRITE == 0 {
        let before = engine.ranges.find(first).map_or(0, |range| range.protection);
        if before & PROT_WRITE != 0 {
            engine.invalidate(&writer, first, behind);
        }
    } else if is_executable && was_executable {
        engine.invalidate(&writer, first, behind);
    } else {
        forget_code(&mut engine, &writer, start, end);
    }
    if is_executable {
        aliases::insert_code(&mut engine, start, end, protection | PROT_READ);
        if !was_executable {
            let tsc = ticks();
            drop(engine);
            tell_image(&writer, start, end, protection, None, tsc);
        }
        if protection & PROT_WRITE != 0 {
            write_event(&writer, event_kind::WRITABLE_CODE, first, [end - start, 0, 0]);
        }
    }
    result
}

/// mremap: code that moves is gone from where it was, and known where it is.
pub fn remap(context: &ThreadContext, arguments: [u64; 6]) -> i64 {
    let [old, old_size, new_size, flags, new, _] = arguments;
    let mut engine = ENGINE.lock();
    let wanted = new..page_end(new, new_size);
    let growth = page_end(old, old_size)..page_end(old, new_size);
    if is_place(&(old..page_end(old, old_size))) && hidden::is_within(&(old..page_end(old, old_size))) {
        return -i64::from(EFAULT);
    }
    if flags & MREMAP_FIXED != 0 && is_place(&wanted) && hidden::is_within(&wanted) {
        let writer = writer_of(context, engine.shared);
        if !room::make(&mut engine, &writer, context, wanted) {
            return -i64::from(ENOMEM);
        }
    } else if is_place(&growth) && hidden::is_within(&growth) {
        let writer = writer_of(context, engine.shared);
        room::make_if_seldom(&mut engine, &writer, context, growth);
    }
    let range = engine.ranges.find(AppPc::from_raw(old));
    let is_alias = engine.aliases.find(AppPc::from_raw(old)).is_some();
    let writer = writer_of(context, engine.shared);
    let old_end = page_end(old, old_size);
    let touched =
        if flags & MREMAP_FIXED == 0 { [old, old_end] } else { [old.min(new), old_end.max(page_end(new, new_size))] };
    let (result, mut engine) = call_holding(engine, &writer, number::MREMAP, arguments, touched);
    let Ok(start) = check(result) else {
        return result;
    };
    if start != old || new_size < old_size {
        let kept = if start == old { page_end(old, new_size) } else { old };
        forget(&mut engine, &writer, kept, page_end(old, old_size));
    }
    if start != old {
        forget(&mut engine, &writer, start, page_end(start, new_size));
    }
    aliases::note_mapping(&mut engine, start, page_end(start, new_size), is_alias);
    if let Some(range) = range {
        aliases::insert_code(&mut engine, start, page_end(start, new_size), range.protection);
        let tsc = ticks();
        drop(engine);
        if start != old {
            tell_image(&writer, start, page_end(start, new_size), range.protection, None, tsc);
        }
    }
    result
}

/// Asks the kernel about the memory at `address`: `true` if it is executable there, and known from now on.
pub fn learn_range(context: &ThreadContext, address: u64) -> bool {
    if address >= USER_END {
        // A page of the kernel's is no memory.
        return false;
    }
    if hidden::is_hidden(address) {
        return false;
    }
    let Some(Mapping { start, end, protection, is_shared }) = find_mapping(context, address) else {
        return false;
    };
    let mut engine = ENGINE.lock();
    if protection & PROT_EXEC == 0 || engine.ranges.find(AppPc::from_raw(address)).is_some() {
        return false;
    }
    if is_shared {
        aliases::note_mapping(&mut engine, start, end, true);
    }
    aliases::insert_code(&mut engine, start, end, protection);
    let writer = writer_of(context, engine.shared);
    let tsc = ticks();
    drop(engine);
    tell_image(&writer, start, end, protection, None, tsc);
    true
}
