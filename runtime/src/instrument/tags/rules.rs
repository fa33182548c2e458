//! The rules of activity (mode `region`): what levels become when a block is executed.
//!
//! Pure. Executing a block raises its level l, -1 at first, by one. With the thread's level T, 0 at first: one above T raises T to
//! match; below T lowers T to match; more than one above is lowered to T. So after each execution the block's level is the
//! thread's. At or over the limit it only matters that both are: a block that is there and executed in a thread that is not
//! comes down to the thread's level, whatever its own was. So levels end at the limit.

/// The level that a block and its thread have after the block was executed, given those before. At most `limit`.
pub fn level_after(block: i32, thread: i32, limit: i32) -> i32 {
    let level = if block > thread { thread } else { block + 1 };
    level.min(limit)
}

/// Fills the table that translated code asks, `limit` from 1 to 254: at (block's level + 1) * 256 + thread's level + 1, what both
/// become, plus one; 0 where the thread is busy, or becomes so. It is zero before.
pub fn fill_table(limit: u8, mut set: impl FnMut(usize, u8)) {
    for block in 0..=usize::from(limit) + 1 {
        for thread in 1..=usize::from(limit) {
            let level = level_after(block as i32 - 1, thread as i32 - 1, i32::from(limit));
            if level < i32::from(limit) {
                set(block * 256 + thread, level as u8 + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As they are told, without an end at the limit.
    fn execute_in_full(levels: &mut [i64], thread: &mut i64, block: usize) {
        levels[block] += 1;
        if levels[block] == *thread + 1 || levels[block] < *thread {
            *thread = levels[block];
        } else if levels[block] > *thread + 1 {
            levels[block] = *thread;
        }
    }

    #[test]
    fn ending_at_the_limit_changes_nothing_below_it() {
        const BLOCKS: usize = 7;
        for limit in [1, 2, 3, 10] {
            let (mut full, mut thread) = ([-1i64; BLOCKS], 0);
            let (mut short, mut short_thread) = ([-1i32; BLOCKS], 0);
            let mut random = 12345u64;
            let mut block = 0;
            for _ in 0..200_000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if random >> 60 < 3 {
                    block = (random >> 33) as usize % BLOCKS;
                }
                execute_in_full(&mut full, &mut thread, block);
                short_thread = level_after(short[block], short_thread, limit);
                short[block] = short_thread;
                assert_eq!(i64::from(short_thread), thread.min(i64::from(limit)));
                assert_eq!(full[block], thread, "a block's level is its thread's");
            }
        }
    }

    #[test]
    fn the_table_leaves_what_is_busy_to_the_dispatcher() {
        let mut table = [0u8; 1 << 16];
        fill_table(10, |index, value| table[index] = value);
        assert_eq!(table[1], 1, "a new block: the thread's level is 0");
        assert_eq!(table[256 + 1], 2, "once more: 1");
        assert_eq!(table[10 * 256 + 10], 0, "both at 9: busy");
        assert_eq!(table[11 * 256 + 10], 10, "a block that was busy comes down");
        assert!(table.iter().skip(11).step_by(256).all(|value| *value == 0), "a busy thread");
    }
}
