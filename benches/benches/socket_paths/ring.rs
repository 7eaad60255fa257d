//! A ring with the flags that the runtime asks for, and the memory that its operations use.
//!
//! This file alone decides what the kernel may touch, and until when: memory is lent to the ring,
//! operations that use it are counted, and a ring that is dropped while some are in flight never
//! gives it back.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::Range;
use std::ptr::NonNull;
use std::rc::Rc;
use std::{io, mem};

use io_uring::squeue::Entry;
use io_uring::{IoUring, cqueue, opcode, types};
use nix::libc;

/// Submissions between two turns: a send and a receive on each of 64 connections, and spare ones.
const DEPTH: u32 = 256;
const COMPLETIONS: u32 = 1024;

/// Of an operation that uses lent memory.
const USES_MEMORY: u64 = 1 << 63;

/// One ring, for the thread that made it.
pub struct Ring {
    // Before the memory that it may use.
    ring: IoUring,
    memory: Vec<Rc<Memory>>,
    /// Operations in flight that use it.
    uses: usize,
}

/// What the kernel has to say about an operation.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// That of the operation.
    pub tag: u64,
    result: i32,
    flags: u32,
}

impl Ring {
    /// # Errors
    /// If the kernel has none, or none for this user.
    pub fn new() -> io::Result<Self> {
        let build = |deferred: bool| {
            let mut builder = IoUring::builder();
            builder.setup_cqsize(COMPLETIONS).dontfork();
            if deferred {
                builder
                    .setup_submit_all()
                    .setup_single_issuer()
                    .setup_defer_taskrun()
                    .setup_taskrun_flag();
            }
            builder.build(DEPTH)
        };
        let ring = build(true).or_else(|error| match error.raw_os_error() {
            // Before Linux 6.1.
            Some(libc::EINVAL) => build(false),
            _ => Err(error),
        })?;
        Ok(Self {
            ring,
            memory: Vec::new(),
            uses: 0,
        })
    }

    /// Has the kernel say when `fd` has one of `events`, once or each time that something comes.
    pub fn poll(&mut self, fd: i32, events: i16, is_multishot: bool, tag: u64) -> io::Result<()> {
        let entry = opcode::PollAdd::new(types::Fd(fd), events as u32)
            .multi(is_multishot)
            .build();
        // SAFETY: a poll uses no memory.
        unsafe { self.push(&entry.user_data(tag)) }
    }

    /// Submits an operation with the next turn.
    ///
    /// # Safety
    /// The memory that the operation uses, provided buffers included, is [lent](Self::lend) to this
    /// ring. The program does not write to it until the operation has completed, nor read it if
    /// the kernel writes.
    pub unsafe fn submit(&mut self, entry: Entry, tag: u64) -> io::Result<()> {
        self.uses += 1;
        // SAFETY: `memory` owns what is lent, at least until `uses`, which counts this operation,
        // is zero again.
        unsafe { self.push(&entry.user_data(tag | USES_MEMORY)) }
    }

    /// # Safety
    /// What the entry points to is there until it has completed.
    unsafe fn push(&mut self, entry: &Entry) -> io::Result<()> {
        // SAFETY: as promised to this function.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }

    /// Keeps `memory` until no operation uses it any more.
    pub fn lend(&mut self, memory: &Rc<Memory>) {
        self.memory.push(Rc::clone(memory));
    }

    /// Registers the parts of `memory` that have `bytes` each, as buffers 0, 1, ...
    pub fn register(&mut self, memory: &Rc<Memory>, bytes: usize) -> io::Result<()> {
        self.lend(memory);
        let count = memory.layout.size() / bytes;
        let buffers: Vec<libc::iovec> = (0..count)
            .map(|index| libc::iovec {
                iov_base: memory.at(index * bytes..(index + 1) * bytes).cast(),
                iov_len: bytes,
            })
            .collect();
        // SAFETY: the memory is lent for the life of this ring.
        unsafe { self.ring.submitter().register_buffers(&buffers) }
    }

    /// Registers a ring of provided buffers: `entries` is what `io_uring_buf_ring` says, for
    /// `count` of them.
    pub fn register_provided(&mut self, entries: &Rc<Memory>, count: u16) -> io::Result<()> {
        self.lend(entries);
        let start = entries.at(0..usize::from(count) * size_of::<types::BufRingEntry>());
        let submitter = self.ring.submitter();
        // SAFETY: `start` is the beginning of a page and of `count` entries, lent for the life of
        // this ring.
        unsafe { submitter.register_buf_ring_with_flags(start as u64, count, 0, 0) }
    }

    /// Hands over what was submitted, waits for something to complete, and appends all that has.
    pub fn turn(&mut self, completions: &mut Vec<Completion>) -> io::Result<()> {
        match self.ring.submit_and_wait(1) {
            // Interrupted, or completions have to be taken first.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY)) => {}
            result => {
                result?;
            }
        }
        for entry in self.ring.completion() {
            let uses_memory = entry.user_data() & USES_MEMORY != 0;
            let completion = Completion {
                tag: entry.user_data() & !USES_MEMORY,
                result: entry.result(),
                flags: entry.flags(),
            };
            if uses_memory && !completion.has_more() {
                self.uses -= 1;
            }
            completions.push(completion);
        }
        Ok(())
    }

    /// Whether an operation in flight uses memory.
    pub fn uses_memory(&self) -> bool {
        self.uses > 0
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.uses_memory() {
            // What is in flight goes on for a while after the ring was closed.
            mem::forget(mem::take(&mut self.memory));
        }
    }
}

impl Completion {
    /// What the system call would have returned.
    pub fn result(self) -> io::Result<u32> {
        u32::try_from(self.result).map_err(|_| io::Error::from_raw_os_error(-self.result))
    }

    /// Whether it ran out of provided buffers.
    pub fn lacks_buffers(self) -> bool {
        self.result == -libc::ENOBUFS
    }

    /// Whether the operation will complete again.
    pub fn has_more(self) -> bool {
        cqueue::more(self.flags)
    }

    /// The provided buffer that was filled.
    pub fn buffer(self) -> Option<u16> {
        cqueue::buffer_select(self.flags)
    }

    /// Whether the socket holds more than was received.
    pub fn left_some(self) -> bool {
        cqueue::sock_nonempty(self.flags)
    }

    /// Whether this says that a buffer sent without a copy is free again.
    pub fn is_notification(self) -> bool {
        cqueue::notif(self.flags)
    }

    /// Whether a notification says that there was a copy all the same, if it was asked for that.
    pub fn was_copied(self) -> bool {
        /// `IORING_NOTIF_USAGE_ZC_COPIED`.
        const COPIED: u32 = 1 << 31;
        self.result as u32 & COPIED != 0
    }
}

/// Zeroed bytes that begin on a page, where the kernel and this thread take turns.
pub struct Memory {
    start: NonNull<u8>,
    layout: Layout,
}

impl Memory {
    /// # Panics
    /// If there are no bytes.
    pub fn new(bytes: usize) -> Rc<Self> {
        const PAGE: usize = 4096;
        assert!(bytes > 0, "an allocation has bytes");
        let layout = Layout::from_size_align(bytes, PAGE).expect("it is small");
        // SAFETY: the layout has bytes.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        Rc::new(Self { start, layout })
    }

    /// Where the bytes of `range` are.
    ///
    /// # Panics
    /// If they are not all here.
    pub fn at(&self, range: Range<usize>) -> *mut u8 {
        assert!(range.start <= range.end && range.end <= self.layout.size());
        // SAFETY: within the allocation, as was just checked.
        unsafe { self.start.as_ptr().add(range.start) }
    }

    /// The bytes of `range`.
    ///
    /// # Safety
    /// Neither the program nor the kernel writes to them for as long as they are borrowed.
    pub unsafe fn bytes(&self, range: Range<usize>) -> &[u8] {
        let length = range.len();
        // SAFETY: the bytes are initialized and in the allocation, which lives as long as `self`;
        // that nothing writes to them is promised.
        unsafe { std::slice::from_raw_parts(self.at(range), length) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and dropped once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
