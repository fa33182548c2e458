//! What depends on the processor: thread context, gates, machine-code emitter.

pub mod x86_64;
