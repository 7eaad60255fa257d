//! Files and the memory for direct I/O.
//!
//! So far this module holds the buffers alone: [`DmaBuffer`], which
//! [`allocate_dma_buffer`](crate::allocate_dma_buffer) and
//! [`allocate_dma_buffer_global`](crate::allocate_dma_buffer_global) make.

#![forbid(unsafe_code)]

pub use crate::memory::DmaBuffer;
