//! The I/O memory of one executor.

#![forbid(unsafe_code)]

use std::cell::OnceCell;
use std::ptr::NonNull;
use std::rc::Rc;

use super::BLOCK_BYTES;
use super::dma_buffer::DmaBuffer;
use super::region::Region;

/// The I/O memory of one executor. Reserved when the first buffer is taken from it.
pub(crate) struct Arena {
    bytes: usize,
    /// `None` inside if the system had no address space for it, which is not asked again.
    region: OnceCell<Option<Rc<Region>>>,
}

/// Smaller arenas than this are not made.
const MIN_BYTES: usize = 64 << 10;

impl Arena {
    /// An arena of at least `bytes` bytes, rounded up to blocks. Reserves nothing.
    pub(crate) fn new(bytes: usize) -> Self {
        let bytes = bytes.max(MIN_BYTES);
        Arena {
            // What cannot be rounded up cannot be reserved either.
            bytes: bytes.checked_next_multiple_of(BLOCK_BYTES).unwrap_or(bytes),
            region: OnceCell::new(),
        }
    }

    /// A buffer of `size` bytes, from the ordinary allocator if the region has no space.
    pub(crate) fn allocate(&self, size: usize) -> DmaBuffer {
        if size == 0 {
            return DmaBuffer::empty();
        }
        let fits = size <= self.bytes;
        let region = if fits { self.region() } else { None };
        match region.and_then(|region| region.take(size)) {
            Some(blocks) => DmaBuffer::in_region(blocks, size),
            None => DmaBuffer::on_heap(size),
        }
    }

    /// The region, which is reserved now if it was not yet.
    fn region(&self) -> Option<&Rc<Region>> {
        if let Some(region) = self.region.get() {
            return region.as_ref();
        }
        let region = self
            .region
            .get_or_init(|| Region::reserve(self.bytes).map(Rc::new));
        if region.is_none() {
            // After the cell is set: a tracing subscriber may take a buffer.
            tracing::warn!(
                "no address space for {} bytes of I/O memory: buffers come from the ordinary allocator",
                self.bytes
            );
        }
        region.as_ref()
    }

    /// Whether `buffer` was taken from it, and not from the ordinary allocator or another arena.
    pub(crate) fn owns(&self, buffer: &DmaBuffer) -> bool {
        let region = self.region.get().and_then(Option::as_ref);
        region.is_some_and(|region| buffer.is_of(region))
    }

    /// Where the memory is, if it is reserved. It stays there as long as the arena.
    pub(crate) fn extent(&self) -> Option<NonNull<[u8]>> {
        Some(self.region.get()?.as_ref()?.extent())
    }

    /// The region, if it is reserved.
    #[cfg(test)]
    pub(super) fn reserved(&self) -> Option<&Region> {
        self.region.get()?.as_deref()
    }
}

impl_debug! { Arena, it: bytes, region: it.region.get() }
