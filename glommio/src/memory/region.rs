//! One mapping, and which of its blocks are taken.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::rc::Rc;

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, munmap};

use super::BLOCK_BYTES;
use super::free_blocks::FreeBlocks;

/// A private mapping, all zero at first, and unmapped when it is dropped.
#[derive(Debug)]
pub(super) struct Mapping(
    /// Base and length.
    NonNull<[u8]>,
);

/// A mapping that buffers are cut from.
#[derive(Debug)]
pub(super) struct Region {
    mapping: Mapping,
    free: RefCell<FreeBlocks>,
}

impl Mapping {
    /// Maps `bytes` bytes and touches none of them.
    pub(super) fn reserve(bytes: usize) -> Option<Mapping> {
        let length = NonZeroUsize::new(bytes)?;
        // SAFETY: no address is asked for, so the mapping replaces no other.
        let base = unsafe {
            mmap_anonymous(
                None,
                length,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_PRIVATE,
            )
        }
        .ok()?
        .cast::<u8>();
        assert!(
            base.addr().get().is_multiple_of(BLOCK_BYTES),
            "a page of Linux has at least 4096 bytes"
        );
        Some(Mapping(NonNull::slice_from_raw_parts(base, bytes)))
    }

    /// Asks for huge pages, of which there are some to be zeroed and freed where there were
    /// thousands.
    pub(super) fn advise_huge_pages(&self) {
        let base = self.0.cast::<c_void>();
        // SAFETY: it changes nothing about what is in the mapping. A kernel without such pages
        // refuses.
        let _ = unsafe { madvise(base, self.0.len(), MmapAdvise::MADV_HUGEPAGE) };
    }

    /// The first byte.
    pub(super) fn address(&self) -> NonNull<u8> {
        self.0.cast()
    }
}

impl Region {
    /// Maps `bytes` bytes, a multiple of a block, and touches none of them.
    pub(super) fn reserve(bytes: usize) -> Option<Region> {
        let blocks = u32::try_from(bytes / BLOCK_BYTES).ok()?;
        Some(Region {
            mapping: Mapping::reserve(bytes)?,
            free: RefCell::new(FreeBlocks::new(blocks)),
        })
    }

    /// Takes the blocks for `size` bytes, at least one. `None` if there is no space.
    pub(super) fn take(self: &Rc<Self>, size: usize) -> Option<Blocks> {
        let count = u32::try_from(size.div_ceil(BLOCK_BYTES)).ok()?;
        let start = self.free.borrow_mut().take(count)?;
        Some(Blocks {
            region: Rc::clone(self),
            start,
            count,
        })
    }

    /// Base and length, which is what a ring registers.
    pub(super) fn extent(&self) -> NonNull<[u8]> {
        self.mapping.0
    }

    /// The free runs of blocks.
    #[cfg(test)]
    pub(super) fn free_runs(&self) -> Vec<(u32, u32)> {
        self.free.borrow_mut().runs()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let base = self.0.cast::<c_void>();
        // SAFETY: the mapping was made in `reserve`, with this base and length. No pointer into it
        // is left: a buffer owns it, or shares the region that does, and it is dropped with the last.
        let result = unsafe { munmap(base, self.0.len()) };
        debug_assert_eq!(result, Ok(()));
    }
}

/// Blocks of a region that belong to the holder of this value, until it is dropped.
#[derive(Debug)]
pub(super) struct Blocks {
    region: Rc<Region>,
    start: u32,
    count: u32,
}

impl Blocks {
    pub(super) fn are_of(&self, region: &Rc<Region>) -> bool {
        Rc::ptr_eq(&self.region, region)
    }

    /// The first byte. From there on as many bytes are theirs as were taken, rounded up to blocks.
    pub(super) fn address(&self) -> NonNull<u8> {
        let base = self.region.mapping.address();
        let offset = self.start as usize * BLOCK_BYTES;
        // SAFETY: `FreeBlocks` has as many blocks as fit into the mapping and `start` is one of
        // them, so the offset lies inside of it.
        unsafe { base.byte_add(offset) }
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.region
            .free
            .borrow_mut()
            .give_back(self.start, self.count);
    }
}
