//! The system's allocator with a count, kept for each thread, so that tests do not see each other.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static COUNTING: Counting = Counting;

/// What a thread has asked of the allocator so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    /// Allocations and reallocations. Freeing is not counted.
    pub calls: usize,
    /// Those of them that were for a kilobyte or more.
    pub large_calls: usize,
    /// Bytes that are allocated and not yet freed.
    pub bytes: usize,
}

thread_local! {
    static SO_FAR: Cell<Allocations> = const { Cell::new(Allocations { calls: 0, large_calls: 0, bytes: 0 }) };
}

impl Allocations {
    pub fn of_this_thread() -> Self {
        SO_FAR.get()
    }

    pub fn since(self, before: Self) -> Self {
        Allocations {
            calls: self.calls - before.calls,
            large_calls: self.large_calls - before.large_calls,
            bytes: self.bytes.wrapping_sub(before.bytes),
        }
    }

    fn count(calls: usize, allocated: usize, freed: usize) {
        let mut so_far = SO_FAR.get();
        so_far.calls += calls;
        so_far.large_calls += usize::from(calls > 0 && allocated >= LARGE);
        so_far.bytes = so_far.bytes.wrapping_add(allocated).wrapping_sub(freed);
        SO_FAR.set(so_far);
    }
}

/// From here on glibc consolidates its fast bins first, all of them at once.
const LARGE: usize = 1024;

struct Counting;

// SAFETY: every call is passed on to the system's allocator as it came, and its answer is returned
// as it is. The counting touches a thread-local `Cell` that is initialised at compile time and has
// no destructor: it neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Allocations::count(1, layout.size(), 0);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        Allocations::count(0, 0, layout.size());
        // SAFETY: the block came from `alloc` or `realloc` above, thus from `System`, with this
        // layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        Allocations::count(1, new_size, layout.size());
        // SAFETY: as for `dealloc`; the caller keeps the contract about `new_size`.
        unsafe { System.realloc(block, layout, new_size) }
    }
}
