//! Fragments that go out of use: code that changes, breakpoints and filters, hot code that is laid out anew.

pub mod invalidate;
pub mod relayout;
pub mod renew;
pub mod stops;
pub mod trust;
