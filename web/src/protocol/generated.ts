// Generated from protocol/schema.toml by `make generate`; do not edit.

export const CONTAINER_MAGIC = 0x3131415441444c43n;
export const CONTAINER_VERSION = 0x1;

// How a fragment ends. Says what its counters mean: see FragmentRecord.counter_index.
export const EXIT_KIND = {
  fall_through: 0,
  jump: 1,
  conditional: 2,
  call: 3,
  indirect_jump: 4,
  indirect_call: 5,
  return: 6,
  syscall: 7,
  none: 8,
} as const;

// Edge kinds of the trace; also `kind` of dynamic_edge and link records. `partial` is no edge of the trace: it says how
// often a fragment was left in its middle, before the instruction at target_pc (which faulted).
export const EDGE_KIND = {
  jump: 0,
  taken: 1,
  not_taken: 2,
  fall_through: 3,
  call: 4,
  indirect_call: 5,
  indirect_jump: 6,
  return: 7,
  syscall: 8,
  signal: 9,
  sigreturn: 10,
  fault: 11,
  start: 12,
  partial: 13,
} as const;
