//! One mapping, and which of its blocks are taken.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::rc::Rc;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::BLOCK_BYTES;
use super::free_blocks::FreeBlocks;

/// A private mapping that buffers are cut from. Unmapped when the last owner drops it.
#[derive(Debug)]
pub(super) struct Region {
    /// Base and length, which is what a ring registers.
    extent: NonNull<[u8]>,
    free: RefCell<FreeBlocks>,
}

impl Region {
    /// Maps `bytes` bytes, a multiple of a block, and touches none of them.
    pub(super) fn reserve(bytes: usize) -> Option<Region> {
        let length = NonZeroUsize::new(bytes)?;
        let blocks = u32::try_from(bytes / BLOCK_BYTES).ok()?;
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
        Some(Region {
            extent: NonNull::slice_from_raw_parts(base, bytes),
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

    /// Base and length.
    pub(super) fn extent(&self) -> NonNull<[u8]> {
        self.extent
    }

    /// The free runs of blocks.
    #[cfg(test)]
    pub(super) fn free_runs(&self) -> Vec<(u32, u32)> {
        self.free.borrow_mut().runs()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let base = self.extent.cast::<c_void>();
        // SAFETY: the mapping was made in `reserve`, with this base and length. No pointer into it
        // is left: all `Blocks` of this region share it, and it is dropped with the last.
        let result = unsafe { munmap(base, self.extent.len()) };
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
        let base = self.region.extent.cast::<u8>();
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
