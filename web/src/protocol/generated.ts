// Generated from protocol/schema.toml by `make generate`; do not edit.

// what a container begins with: CLDATA11
export const CONTAINER_MAGIC = 0x3131415441444c43n;
// of containers
export const CONTAINER_VERSION = 1;
// with more blocks than so many the graph of a process stays at the level of functions; a function's own view has its
// blocks
export const MOST_BLOCKS = 300000;
// blocks that the listing asks for at a time
export const LISTING_PAGE = 64;

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
// often a fragment was left in its middle, before the instruction at target_pc (which faulted). A dynamic_edge record
// of kind `return` is no edge, it announces the symbol of a return (mode full).
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

// What happened at one moment of a thread's time.
export const TICK_KIND = {
  signal: 0,
  fault: 1,
  system_call: 2,
} as const;

// Why the order of a stretch of time is not known. busy: it was counted, since the thread was busy. lost: what was
// recorded of it is lost. mode: this mode records none. thinned: left out, to stay within a budget or while no order
// was recorded.
export const GAP_REASON = {
  busy: 0,
  lost: 1,
  mode: 2,
  thinned: 3,
} as const;

// Bits of a function's flags. stub: it only leads into another image. main_image: it is the executable's. outside: it
// is in no image.
export const FUNCTION_FLAG = {
  stub: 1,
  main_image: 2,
  outside: 4,
} as const;

// How a thread ended: end of threads. killed: from outside, or by another thread's exit. detached: it goes on untraced.
// lost: that is not known.
export type ThreadEndWord = "exit" | "killed" | "detached" | "lost";

// The recorder that was in use: mode of the manifest.
export type ModeWord = "coverage" | "counts" | "region" | "full";

// Why a thread stands still: reason in answers of `clew control`.
export type HoldWord = "asked" | "stepped" | "breakpoint" | "capture" | "block";
