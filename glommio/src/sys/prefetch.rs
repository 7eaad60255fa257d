//! Asking the processor for memory that will soon be needed.

#![allow(unsafe_code)]

/// Asks for so many cache lines from `address` on. A hint: any address will do.
#[inline]
pub(crate) fn prefetch<const LINES: usize>(address: *const ()) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..LINES {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = address.cast::<i8>().wrapping_add(64 * line);
        // SAFETY: the instruction does nothing at all where nothing can be read.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
