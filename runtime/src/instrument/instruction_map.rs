//! Where the instructions of a block went in its fragment: what a fault or a signal there is taken back by.

extern crate alloc;
use crate::cache::fragment::MapEntry;
use crate::cpu::spill::SpillState;
use crate::decode::Block;
use alloc::vec::Vec;

/// Where the instructions went, while they are emitted.
pub struct MapBuilder {
    pub entries: Vec<MapEntry>,
    /// Lent registers are in their slots even where nothing is under way.
    pub is_lending: bool,
}

impl MapBuilder {
    pub fn new(block: &Block, is_lending: bool) -> MapBuilder {
        MapBuilder { entries: Vec::with_capacity(block.count() + 8), is_lending }
    }

    pub fn mark(&mut self, position: usize, app_offset: u64, state: SpillState) {
        let is_idle = self.is_lending && state == SpillState::None;
        let state = if is_idle { SpillState::Both } else { state };
        self.entries.push(MapEntry {
            cache_offset: position as u16,
            app_offset: app_offset as u16,
            state,
            padding: [0; 3],
        });
    }
}
