//! The buffer type of users.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::{io, slice};

use super::BLOCK_BYTES;
use super::region::{Blocks, Mapping, Region};

/// Memory for direct I/O: bytes that begin at a multiple of 4096.
///
/// Made by [`allocate_dma_buffer`](crate::allocate_dma_buffer), from the I/O memory of the
/// executor, and by [`allocate_dma_buffer_global`], from the ordinary allocator. What is in a new
/// buffer is not specified: zeros, or what an earlier buffer of the same executor held.
///
/// It may outlive its executor, and keeps its memory until it is dropped. It stays on its thread.
///
/// # Examples
///
/// ```
/// # glommio::LocalExecutor::default().run(async {
/// let mut buffer = glommio::allocate_dma_buffer(512);
/// buffer.as_bytes_mut().fill(7);
/// assert!(!buffer.is_empty() && buffer.len() == 512);
/// assert_eq!(buffer.as_ptr().align_offset(4096), 0);
/// assert_eq!(buffer.as_mut_ptr().cast_const(), buffer.as_ptr());
/// buffer.trim_to_size(100);
/// assert_eq!(buffer.as_bytes(), [7; 100]);
/// # });
/// ```
pub struct DmaBuffer {
    start: NonNull<u8>,
    len: usize,
    memory: Memory,
}

/// Where the bytes are.
enum Memory {
    /// There are none.
    Nothing,
    Heap(#[expect(dead_code, reason = "held for its destructor")] Heap),
    Mapping(#[expect(dead_code, reason = "held for its destructor")] Mapping),
    Region(Blocks),
}

impl DmaBuffer {
    /// A buffer without bytes.
    pub(super) fn empty() -> Self {
        DmaBuffer {
            start: NonNull::new(ptr::without_provenance_mut(BLOCK_BYTES))
                .expect("the address is not zero"),
            len: 0,
            memory: Memory::Nothing,
        }
    }

    /// A buffer of `size` bytes in blocks that were taken for as many.
    pub(super) fn in_region(blocks: Blocks, size: usize) -> Self {
        DmaBuffer {
            start: blocks.address(),
            len: size,
            memory: Memory::Region(blocks),
        }
    }

    /// A buffer of `size` zeros from the ordinary allocator, which is not asked if `size` is 0.
    pub(crate) fn of_any_size(size: usize) -> Self {
        match size {
            0 => Self::empty(),
            size => Self::on_heap(size),
        }
    }

    /// A buffer of `size` zeros from the ordinary allocator. `size` is not 0.
    pub(super) fn on_heap(size: usize) -> Self {
        let layout = Layout::from_size_align(size, BLOCK_BYTES)
            .expect("a DMA buffer has at most half the address space");
        Self::try_on_heap(layout).unwrap_or_else(|| handle_alloc_error(layout))
    }

    /// The kernel zeroes the pages of a long buffer as they are used, most often by a worker of its
    /// own that reads into it. The allocator would have this thread zero them all beforehand.
    fn try_on_heap(layout: Layout) -> Option<Self> {
        let (start, memory) = if layout.size() <= HEAP_BYTES {
            let heap = Heap::try_allocate(layout)?;
            (heap.start, Memory::Heap(heap))
        } else {
            let mapping = Mapping::reserve(layout.size())?;
            mapping.advise_huge_pages();
            (mapping.address(), Memory::Mapping(mapping))
        };
        Some(DmaBuffer {
            start,
            len: layout.size(),
            memory,
        })
    }

    /// As [`of_any_size`](Self::of_any_size).
    ///
    /// # Errors
    ///
    /// `ENOMEM` if there is not so much memory.
    pub(crate) fn try_of_any_size(size: usize) -> io::Result<Self> {
        if size == 0 {
            return Ok(Self::empty());
        }
        let layout = Layout::from_size_align(size, BLOCK_BYTES).ok();
        let buffer = layout.and_then(Self::try_on_heap);
        buffer.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))
    }

    /// Whether its bytes are in `region`.
    pub(super) fn is_of(&self, region: &Rc<Region>) -> bool {
        match &self.memory {
            Memory::Region(blocks) => blocks.are_of(region),
            Memory::Nothing | Memory::Heap(_) | Memory::Mapping(_) => false,
        }
    }

    /// Cuts off what lies past the first `newsize` bytes, for good. The memory is freed with the
    /// rest.
    ///
    /// # Panics
    ///
    /// Panics if the buffer is shorter than `newsize`.
    pub fn trim_to_size(&mut self, newsize: usize) {
        assert!(
            newsize <= self.len,
            "a buffer of {} bytes cannot be trimmed to {newsize}",
            self.len
        );
        self.len = newsize;
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: (1) `start` points to at least `len` bytes of `memory`, which stay where they
        // are until the buffer is dropped; (2) they belong to this buffer alone, so only it
        // gives out references to them; (3) they are initialized: the heap's and those of
        // a mapping were zeroed, a region's always are (invariant 3 of the module). An empty buffer's pointer is
        // neither null nor unaligned.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The bytes, to be written.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_bytes`, and `self` is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// How many bytes there are: what was asked for, or what was trimmed to.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the bytes begin: at a multiple of 4096.
    ///
    /// All bytes written through this pointer must be initialized, as with that of a slice:
    /// structures with padding are copied field by field.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Where the bytes begin: at a multiple of 4096.
    pub fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }
}

impl AsRef<[u8]> for DmaBuffer {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl AsMut<[u8]> for DmaBuffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self.as_bytes_mut()
    }
}

impl_debug! {
    /// Says where and how long, not what is in it.
    DmaBuffer, it: start, len; ..
}

/// Zeroed memory of the ordinary allocator, freed when it is dropped.
struct Heap {
    start: NonNull<u8>,
    layout: Layout,
}

/// A longer buffer has a mapping of its own.
const HEAP_BYTES: usize = 1 << 20;

impl Heap {
    fn try_allocate(layout: Layout) -> Option<Self> {
        assert_ne!(layout.size(), 0);
        // SAFETY: the size is not 0, by the assertion.
        let start = unsafe { alloc_zeroed(layout) };
        Some(Heap {
            start: NonNull::new(start)?,
            layout,
        })
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: it was allocated in `try_allocate` with this layout, and is freed nowhere else.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// A buffer of `size` bytes from the ordinary allocator, on any thread, with or without an
/// executor.
///
/// For buffers that are kept: those of [`allocate_dma_buffer`](crate::allocate_dma_buffer) take I/O
/// memory of the executor from others. Its bytes are zero. With a `size` of 0 it is empty, and
/// nothing is allocated.
///
/// # Panics
///
/// Panics if `size` is more than half the address space.
///
/// # Examples
///
/// ```
/// let buffer = glommio::allocate_dma_buffer_global(10_000);
/// assert_eq!(buffer.len(), 10_000);
/// assert_eq!(buffer.as_ptr().addr() % 4096, 0);
/// ```
pub fn allocate_dma_buffer_global(size: usize) -> DmaBuffer {
    DmaBuffer::of_any_size(size)
}
