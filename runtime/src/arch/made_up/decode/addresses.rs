//! All numbers are addresses, and the kernel has no code that programs call.

use crate::context::addresses::AppPc;

pub fn is_in_kernel_page(_: AppPc) -> bool {
    false
}
