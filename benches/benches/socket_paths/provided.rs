//! A ring of buffers from which the kernel takes one for whatever comes.

use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::{opcode, types};

use crate::ring::{Memory, Ring};

/// Buffers of one size, each of which is either the kernel's or, from the completion that names it
/// until it is given back, ours.
pub struct ProvidedBuffers {
    entries: Rc<Memory>,
    buffers: Rc<Memory>,
    count: u16,
    bytes: usize,
    /// Where the next entry goes; the kernel knows of those before it once it was told.
    tail: u16,
}

impl ProvidedBuffers {
    /// Gives `ring` so many buffers of `bytes` each. The count is a power of two.
    ///
    /// # Errors
    /// `EINVAL` before Linux 5.19.
    pub fn new(ring: &mut Ring, count: u16, bytes: usize) -> io::Result<Self> {
        assert!(count.is_power_of_two(), "the kernel masks their indices");
        let entries = Memory::new(usize::from(count) * size_of::<types::BufRingEntry>());
        let buffers = Memory::new(usize::from(count) * bytes);
        ring.lend(&buffers);
        ring.register_provided(&entries, count)?;
        let mut provided = Self {
            entries,
            buffers,
            count,
            bytes,
            tail: 0,
        };
        for buffer in 0..count {
            provided.give_back(buffer);
        }
        provided.publish();
        Ok(provided)
    }

    /// Has everything that comes for `fd` received into these buffers, of which `ring` must be the
    /// one.
    pub fn receive(&self, ring: &mut Ring, fd: i32, tag: u64) -> io::Result<()> {
        let entry = opcode::RecvMulti::new(types::Fd(fd), 0).build();
        // SAFETY: entries and buffers are lent to the ring. A buffer that was given back is not
        // touched here before a completion names it: see `bytes`.
        unsafe { ring.submit(entry, tag) }
    }

    /// The first bytes of a buffer.
    ///
    /// # Safety
    /// A completion has named the buffer, and it was not given back since.
    pub unsafe fn bytes(&self, buffer: u16, length: usize) -> &[u8] {
        let start = usize::from(buffer) * self.bytes;
        assert!(length <= self.bytes, "it holds no more");
        // SAFETY: the buffer is ours, as promised, and giving it back needs `self` for itself.
        unsafe { self.buffers.bytes(start..start + length) }
    }

    /// Where a buffer begins, for the kernel to send from.
    pub fn start(&self, buffer: u16) -> *const u8 {
        let start = usize::from(buffer) * self.bytes;
        self.buffers.at(start..start + self.bytes)
    }

    /// Returns a buffer that is not needed any more.
    pub fn give_back(&mut self, buffer: u16) {
        let size = size_of::<types::BufRingEntry>();
        let index = usize::from(self.tail & (self.count - 1));
        let entry = self.entries.at(index * size..(index + 1) * size).cast();
        let start = self.start(buffer);
        // SAFETY: an aligned and initialized entry of ours: the kernel reads none that lies behind
        // the tail it was told of, and there are as many entries as buffers, so it has
        // taken what was in this one. Its last field is the tail in the first entry, which
        // this does not touch.
        unsafe {
            let entry: *mut types::BufRingEntry = entry;
            (*entry).set_addr(start as u64);
            (*entry).set_len(self.bytes as u32);
            (*entry).set_bid(buffer);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    /// Tells the kernel of the buffers given back.
    pub fn publish(&self) {
        let size = size_of::<types::BufRingEntry>();
        let first: *const types::BufRingEntry = self.entries.at(0..size).cast();
        // SAFETY: the first of the registered entries, in which the tail is.
        let tail = unsafe { types::BufRingEntry::tail(first) }.cast_mut();
        // SAFETY: aligned, and there as long as `entries`; while the kernel may read it, only this
        // writes to it.
        let tail = unsafe { AtomicU16::from_ptr(tail) };
        tail.store(self.tail, Ordering::Release);
    }
}
