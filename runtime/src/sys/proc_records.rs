//! Where one read of a file in /proc ends: with the pieces that the kernel shows as a whole.
//!
//! Pure. Knows nothing of what the text says, but for where it tells of a mapping.

use super::proc_text::parse_mapping;

/// Where a piece of text starts that the kernel shows as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record {
    /// With each line.
    Line,
    /// With the lines that start with a mapping.
    Mapping,
    /// At the start alone.
    Text,
}

/// How much of `text`, from `position` on, one read of `count` bytes gives: as seq_read of fs/seq_file.c, what is left of a record that
/// was read in part, a record, and as many more as there is room for in its buffer of one page.
pub fn read_length(text: &[u8], record: Record, position: usize, count: usize) -> usize {
    const BUFFER_BYTES: usize = 4096;
    let mut end = position;
    if position >= text.len() {
        return 0;
    }
    if !starts_record(text, record, position) {
        end = record_end(text, record, position);
        if end - position >= count {
            return count;
        }
    }
    let (start, wanted) = (end, count - (end - position));
    end = record_end(text, record, start);
    while end < text.len() && end - start < wanted {
        let next = record_end(text, record, end);
        if next - start >= BUFFER_BYTES {
            break;
        }
        end = next;
    }
    count.min(end - position)
}

/// Whether a record starts at `at`.
fn starts_record(text: &[u8], record: Record, at: usize) -> bool {
    let is_line = at == 0 || text[at - 1] == b'\n';
    match record {
        Record::Line => is_line,
        Record::Mapping => is_line && parse_mapping(line_at(text, at)).is_some(),
        Record::Text => at == 0,
    }
}

/// Where the record ends that `at` is in or that starts there.
fn record_end(text: &[u8], record: Record, at: usize) -> usize {
    let mut end = at;
    while end < text.len() {
        end += line_at(text, end).len();
        if end < text.len() && starts_record(text, record, end) {
            break;
        }
    }
    end
}

/// The line, or what is left of it, from `at` on, with its end.
fn line_at(text: &[u8], at: usize) -> &[u8] {
    let rest = &text[at..];
    let length = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
    &rest[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_end_with_records_as_the_kernels_do() {
        let line = [b'x'; 99];
        let lines = [&line[..], b"\n"].concat().repeat(100);
        let whole = |position, count| read_length(&lines, Record::Line, position, count);
        // 40 lines of 100 bytes are less than a page.
        assert_eq!([whole(0, 1 << 16), whole(4000, 1 << 16), whole(0, 50), whole(0, 150)], [4000, 4000, 50, 150]);
        // What was left of a line, then a buffer of its own.
        assert_eq!([whole(50, 1 << 16), whole(50, 50), whole(50, 51)], [4050, 50, 51]);
        assert_eq!([whole(9_900, 500), whole(9_999, 500), whole(10_000, 500), whole(1 << 40, 5)], [100, 1, 0, 0]);
        assert_eq!(read_length(&lines, Record::Text, 0, 1 << 16), 10_000);
        assert_eq!(read_length(&lines, Record::Text, 5_000, 1 << 16), 5_000);
        let maps = [b"1000-2000 rw-p 0\n", &lines[..3000]].concat().repeat(3);
        let length = |position| read_length(&maps, Record::Mapping, position, 1 << 16);
        assert_eq!([length(0), length(17), length(3017)], [3017, 6017, 3017]);
        assert_eq!(read_length(b"", Record::Line, 0, 10), 0);
        assert_eq!(read_length(b"x", Record::Line, 0, 0), 0);
    }
}
