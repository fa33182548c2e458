//! Ordered paths: the complete order in which a thread executed basic blocks, as what of it the code does not imply. And rules by which
//! stacks are unwound, out of what files say of their functions' frames.
//!
//! Pure: no allocation, no system, no panic on any input. The runtime links it for the rules that both sides keep, the
//! controller loads it to read and re-code paths. Modules are floors; each may use only those named after it: ffi >
//! advance, flow > walk, fold, accesses > shadow, surprises, symbols, code > protocol; ffi > call_frames > frame_rules.
#![cfg_attr(not(test), no_std)]

pub mod accesses;
pub mod advance;
pub mod call_frames;
pub mod code;
pub mod counter;
#[cfg(feature = "loaded")]
pub mod ffi;
pub mod flow;
pub mod fold;
pub mod frame_rules;
pub mod history;
pub mod logistic;
pub mod mixer;
pub mod predictor;
pub mod protocol;
pub mod range_coder;
pub mod recode;
pub mod shadow;
pub mod slots;
pub mod source;
pub mod surprises;
pub mod symbols;
pub mod walk;

#[cfg(test)]
mod tests;

/// The library by itself has nobody to tell; nothing in it panics.
#[cfg(all(feature = "loaded", not(test)))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
