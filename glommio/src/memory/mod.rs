//! Owns the memory that direct I/O reads into and writes from: aligned buffers, and the arena of
//! one executor from which they are cut.
//!
//! ```text
//!   Arena ──first buffer──▶ Region: one mapping of `io_memory` bytes, all zero
//!                           ┌──────┬──┬────────────┬──────┬─ ─ ─ ─ ─ ─ ─ ─┐
//!   DmaBuffer ─────────────▶│ ▓▓▓▓ │▓▓│ ▓▓▓▓▓▓▓▓▓▓ │      │               │  ▓ in a buffer
//!                           └──────┴──┴────────────┴──────┴─ ─ ─ ─ ─ ─ ─ ─┘
//!   DmaBuffer ──▶ ordinary allocator, or a mapping of its own from 1 MiB on, when the region is full
//! ```
//!
//! The reactor registers the region with its ring at the first direct I/O.
//!
//! Invariants:
//!
//! 1. The blocks of two living buffers do not overlap, and lie inside the region (`free_blocks.rs`,
//!    which is pure, and which a property test holds against a bitmap).
//! 2. A region stays mapped as long as its arena or one of its buffers lives.
//! 3. Every byte of a region is initialized at all times. The kernel maps it as zeros; every write
//!    to it afterwards, through `&mut [u8]`, the kernel, or the pointer of
//!    [`DmaBuffer::as_mut_ptr`], writes initialized bytes. So a block that is used again needs no
//!    zeroing, and handing it out takes as long for a megabyte as for a page.
//! 4. Nothing is mapped and nothing allocated before the first buffer is taken.
//!
//! Cost: taking a buffer from the arena and giving it back takes a few list operations, at most one
//! for each power of two between a page and the region. Buffers from the ordinary allocator are
//! zeroed; the pages of a mapping, when they are first touched.

mod arena;
mod dma_buffer;
mod free_blocks;
mod region;
#[cfg(test)]
mod tests;

pub(crate) use arena::Arena;
pub use dma_buffer::{DmaBuffer, allocate_dma_buffer_global};

/// Where every buffer begins: what direct I/O asks for on all common devices. Also the unit in
/// which the arena is cut.
const BLOCK_BYTES: usize = 4096;
