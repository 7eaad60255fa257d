//! Memory for tasks: cells of a few sizes, cut from chunks that belong to one executor.
//!
//! ```text
//!   class of 112 bytes   open: chunk ⇄ chunk      full: chunk ⇄ chunk ⇄ chunk
//!   class of 128 bytes   open: chunk              full: -
//!   chunk  ┌────────┬──────┬──────┬──────┬──
//!          │ header │ cell │ cell │ cell │ ..    8 KiB from the allocator
//!          └────────┴──────┴──────┴──────┴──
//! ```
//!
//! Tasks are most of what an executor allocates. Handed to the allocator one by one, a peak of them
//! leaves small pieces by the hundred thousand; glibc keeps pieces of up to 128 bytes unmerged and
//! merges them all in the next allocation above a kilobyte, which then takes ten milliseconds,
//! whose ever it is. Here a freed cell goes back to its chunk, and an empty chunk to the allocator.
//!
//! # Who touches what
//!
//! Lists, counts and free cells belong to the owner's thread, and only while the owner is current
//! on it (as with [`Schedule::is_owner`](super::Schedule::is_owner)). A cell that is freed
//! elsewhere is only counted, in the one atomic field of its chunk, and is used again when all
//! cells of the chunk are free. The count is biased, as in [`biased`](super::biased): while the
//! store lives, the bias keeps it from reaching zero; a store that is dropped trades the bias for
//! the number of its cells in use, and from then on the last cell to be freed frees the chunk.
//!
//! # Bounds
//!
//! At most one empty chunk is kept per class. A chunk with one cell
//! in use stays: survivors of a peak keep 8 KiB each in the worst case, if each lies in a
//! chunk of its own; new tasks fill these chunks up before a new one is asked for.
//!
//! Cost: allocating and freeing on the owner's thread, some ten plain loads and stores; elsewhere
//! one atomic operation.

#![allow(unsafe_code)]

use std::alloc::{Layout, handle_alloc_error};
#[cfg(not(loom))]
use std::alloc::{alloc, dealloc};
use std::cell::Cell;
use std::ptr::{self, NonNull};

#[cfg(loom)]
use loom::alloc::{alloc, dealloc};

use crate::loom::Cell as WatchedCell;
use crate::loom::sync::atomic::{AtomicIsize, Ordering};
use crate::sys::prefetch::prefetch;

/// What is asked of the allocator at a time. No more alignment than it gives anyway: room for more
/// would be lost between the chunks.
const CHUNK: Layout = match Layout::from_size_align(8192, CELL_ALIGN) {
    Ok(layout) => layout,
    Err(_) => panic!("the alignment is a power of two"),
};

/// Cells begin here in a chunk.
const CELLS_AT: usize = size_of::<Chunk>().next_multiple_of(CELL_ALIGN);

const CELL_ALIGN: usize = 16;

// The largest chunk has fewer cells than an index can tell.
const _: () = assert!(CHUNK.size() / SMALLEST <= u16::MAX as usize);
const SMALLEST: usize = 64;
const STEP: usize = 16;
const LARGEST: usize = 512;
const CLASSES: usize = (LARGEST - SMALLEST) / STEP + 1;

/// Chunks without a free cell that are looked at before a new one is asked for: all their cells may
/// have been freed on other threads.
const LOOKED_AT: usize = 4;

/// More than there can be cells in a chunk.
const BIAS: isize = isize::MAX / 2;

/// A size of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SizeClass(u8);

impl SizeClass {
    /// The class of cells for `layout`, if it is small enough for one.
    ///
    /// There is none under loom, whose models are about one task at a time, and none with
    /// `--cfg task_cells_boxed`, under which the address sanitizer sees each task as an allocation.
    pub(super) const fn of(layout: Layout) -> Option<SizeClass> {
        let is_small = layout.size() <= LARGEST && layout.align() <= CELL_ALIGN;
        if !is_small || cfg!(any(loom, task_cells_boxed)) {
            return None;
        }
        Some(SizeClass(
            layout.size().saturating_sub(SMALLEST).div_ceil(STEP) as u8,
        ))
    }

    /// The class with the fewest cells in a chunk.
    #[cfg(all(test, loom))]
    pub(super) const LARGEST: SizeClass = SizeClass((CLASSES - 1) as u8);

    pub(super) const fn cell_bytes(self) -> usize {
        SMALLEST + self.0 as usize * STEP
    }

    /// Where in its chunk a cell begins.
    const fn offset(self, index: usize) -> usize {
        CELLS_AT + index * self.cell_bytes()
    }

    pub(super) const fn cells(self) -> usize {
        (CHUNK.size() - CELLS_AT) / self.cell_bytes()
    }
}

/// The memory for one executor's tasks.
pub(crate) struct CellStore {
    classes: [Class; CLASSES],
}

/// The chunks that are cut into cells of one size.
struct Class {
    /// Those with a free cell. The first one serves.
    open: List,
    full: List,
}

/// The head of a chunk.
struct Chunk {
    store: NonNull<CellStore>,
    class: Cell<SizeClass>,
    /// Whether it is in the list `open` of its class, instead of `full`.
    is_open: Cell<bool>,
    /// Cells in use, and those freed on other threads.
    taken: WatchedCell<isize>,
    /// Cells that have been in use and are free.
    free: WatchedCell<*mut FreeCell>,
    /// The cells from here on have never been in use.
    untouched: Cell<usize>,
    next: Cell<*const Chunk>,
    previous: Cell<*const Chunk>,
    /// The bias, less the cells that were freed on other threads; the cells in use, once the store
    /// is gone. Any thread.
    shared: AtomicIsize,
}

struct FreeCell {
    next: *mut FreeCell,
    index: u16,
}

/// What is overwritten at the beginning of a cell that becomes free.
pub(super) const FREE_CELL_BYTES: usize = size_of::<FreeCell>();

/// A cell in use. Does not free it when dropped: see [`free`](Self::free).
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskCell {
    pub(super) memory: NonNull<u8>,
    /// Which one it is of its chunk.
    pub(super) index: u16,
}

impl CellStore {
    /// An empty store, at an address that stays.
    pub(crate) fn new() -> Box<CellStore> {
        Box::new(CellStore {
            classes: [const { Class::new() }; CLASSES],
        })
    }

    /// A cell of `class`.
    #[inline]
    pub(super) fn allocate(&self, class: SizeClass) -> TaskCell {
        let chunk = match self.classes[class.0 as usize].open.first() {
            Some(chunk) => chunk,
            None => self.open_chunk(class),
        };
        // SAFETY: chunks in our lists are alive.
        let head = unsafe { chunk.as_ref() };
        head.taken.set(head.taken.get() + 1);
        let cell = head.free.get();
        let cell = if cell.is_null() {
            let index = head.untouched.get();
            head.untouched.set(index + 1);
            TaskCell {
                // SAFETY: an open chunk has a free cell, and this is the first that was never in
                // use: it lies within the chunk, behind its head.
                memory: unsafe { chunk.cast::<u8>().add(class.offset(index)) },
                index: index as u16,
            }
        } else {
            // SAFETY: (1) cells in the list are free and hold a `FreeCell`. (2) Not null.
            unsafe {
                head.free.set((*cell).next);
                TaskCell {
                    memory: NonNull::new_unchecked(cell.cast()),
                    index: (*cell).index,
                }
            }
        };
        if head.free.get().is_null() && head.untouched.get() == class.cells() {
            self.close_chunk(chunk);
        }
        cell
    }

    /// Calls `visit` for each cell that is or was in use, the oldest full chunks of a size first.
    /// Meanwhile none is allocated or freed on this thread.
    pub(super) fn visit(&self, mut visit: impl FnMut(NonNull<u8>)) {
        for class in &self.classes {
            for chunk in class.full.oldest_first().chain(class.open.oldest_first()) {
                // SAFETY: chunks in our lists are alive.
                let head = unsafe { chunk.as_ref() };
                for index in 0..head.untouched.get() {
                    let offset = head.class.get().offset(index);
                    // SAFETY: so far behind the head of its chunk a cell begins.
                    visit(unsafe { chunk.cast::<u8>().add(offset) });
                }
            }
        }
    }

    /// Chunks that the allocator has not got back.
    #[cfg(all(test, not(loom)))]
    pub(super) fn chunks(&self) -> usize {
        let lists = self.classes.iter().flat_map(|it| [&it.open, &it.full]);
        lists.map(List::len).sum()
    }

    #[cold]
    fn open_chunk(&self, class: SizeClass) -> NonNull<Chunk> {
        let lists = &self.classes[class.0 as usize];
        for _ in 0..LOOKED_AT {
            let Some(chunk) = lists.full.first() else {
                break;
            };
            // SAFETY: chunks in our lists are alive.
            let head = unsafe { chunk.as_ref() };
            if head.is_unused() {
                lists.full.remove(chunk);
                head.reset(class);
                lists.open.push(chunk);
                return chunk;
            }
            lists.full.rotate();
        }
        let chunk = self.allocate_chunk(class);
        // SAFETY: it was allocated and is in no list.
        unsafe { chunk.as_ref() }.reset(class);
        lists.open.push(chunk);
        chunk
    }

    fn allocate_chunk(&self, class: SizeClass) -> NonNull<Chunk> {
        // SAFETY: the layout has a size.
        let memory = unsafe { alloc(CHUNK) };
        let Some(chunk) = NonNull::new(memory.cast::<Chunk>()) else {
            handle_alloc_error(CHUNK)
        };
        let head = Chunk {
            store: NonNull::from(self),
            class: Cell::new(class),
            is_open: Cell::new(false),
            taken: WatchedCell::new(0),
            free: WatchedCell::new(ptr::null_mut()),
            untouched: Cell::new(0),
            next: Cell::new(ptr::null()),
            previous: Cell::new(ptr::null()),
            shared: AtomicIsize::new(BIAS),
        };
        // SAFETY: the memory is ours, large enough and aligned for a head.
        unsafe { chunk.write(head) };
        chunk
    }

    /// The last free cell of `chunk` was given out.
    #[cold]
    fn close_chunk(&self, chunk: NonNull<Chunk>) {
        // SAFETY: chunks in our lists are alive.
        let head = unsafe { chunk.as_ref() };
        let lists = &self.classes[head.class.get().0 as usize];
        lists.open.remove(chunk);
        head.is_open.set(false);
        lists.full.push(chunk);
    }

    /// A cell of the full `chunk` became free.
    #[cold]
    fn reopen_chunk(&self, chunk: NonNull<Chunk>) {
        // SAFETY: chunks in our lists are alive.
        let head = unsafe { chunk.as_ref() };
        let lists = &self.classes[head.class.get().0 as usize];
        lists.full.remove(chunk);
        head.is_open.set(true);
        lists.open.push(chunk);
    }

    /// No cell of `chunk`, which is open, is in use.
    fn empty_chunk(&self, chunk: NonNull<Chunk>) {
        // SAFETY: chunks in our lists are alive.
        let head = unsafe { chunk.as_ref() };
        let lists = &self.classes[head.class.get().0 as usize];
        // The last one is kept: tasks that come and go one at a time would ask for it each time.
        if lists.open.has_one() {
            return;
        }
        lists.open.remove(chunk);
        // SAFETY: it has left its list, and no cell of it is in use.
        unsafe { free_chunk(chunk) };
    }
}

impl Drop for CellStore {
    fn drop(&mut self) {
        let lists = self.classes.iter().flat_map(|it| [&it.open, &it.full]);
        for list in lists {
            while let Some(chunk) = list.first() {
                list.remove(chunk);
                // SAFETY: chunks in our lists are alive; from the next statement on it belongs to
                // those who free its cells, if any is in use.
                let taken = unsafe { chunk.as_ref() }.taken.get();
                // SAFETY: the share of the owner in the count is the bias.
                unsafe { give_up(chunk, taken - BIAS) };
            }
        }
    }
}

impl Class {
    const fn new() -> Self {
        Class {
            open: List::new(),
            full: List::new(),
        }
    }
}

impl Chunk {
    /// Whether no cell is in use.
    #[inline]
    fn is_unused(&self) -> bool {
        // Acquire: those who freed cells elsewhere are done with them before they are used again.
        self.taken.get() == BIAS - self.shared.load(Ordering::Acquire)
    }

    /// Makes a chunk without cells in use one that is open and has never been used.
    fn reset(&self, class: SizeClass) {
        debug_assert!(self.is_unused(), "cells in use are not given out again");
        // No other thread knows the chunk.
        self.shared.store(BIAS, Ordering::Relaxed);
        self.class.set(class);
        self.is_open.set(true);
        self.taken.set(0);
        self.free.set(ptr::null_mut());
        self.untouched.set(0);
    }
}

impl TaskCell {
    /// Asks for the head of the cell's chunk, which freeing the cell reads and changes.
    #[inline]
    pub(super) fn prefetch_chunk(&self, class: SizeClass) {
        let offset = class.offset(self.index.into());
        prefetch::<2>(self.memory.as_ptr().wrapping_sub(offset).cast());
    }

    /// Frees the cell, of `class`. `is_owner`: on the thread of the store's owner, with the owner
    /// current.
    ///
    /// # Safety
    /// The cell came from [`CellStore::allocate`] of this class, has not been freed, and is not
    /// used any more. If `is_owner`, this is the thread of the store, which is alive.
    #[inline]
    pub(super) unsafe fn free(self, class: SizeClass, is_owner: bool) {
        let offset = class.offset(self.index.into());
        // SAFETY: so far behind the head of its chunk the cell begins, in the same allocation.
        let chunk = unsafe { self.memory.sub(offset) }.cast::<Chunk>();
        if !is_owner {
            // SAFETY: this cell is one of the count.
            return unsafe { give_up(chunk, -1) };
        }
        // SAFETY: while its store lives, nothing but the store frees a chunk.
        let head = unsafe { chunk.as_ref() };
        let cell = self.memory.cast::<FreeCell>().as_ptr();
        // SAFETY: the cell is free, and large enough and aligned for this.
        unsafe {
            cell.write(FreeCell {
                next: head.free.get(),
                index: self.index,
            });
        }
        head.free.set(cell);
        head.taken.set(head.taken.get() - 1);
        // SAFETY: the caller promises that the store is alive; it does not move.
        let store = unsafe { head.store.as_ref() };
        if !head.is_open.get() {
            store.reopen_chunk(chunk);
        }
        if head.is_unused() {
            store.empty_chunk(chunk);
        }
    }
}

/// Changes the shared count of `chunk`, and frees it if nothing is left of it.
///
/// # Safety
/// What is given up is the caller's, and the caller does not use the chunk any more.
unsafe fn give_up(chunk: NonNull<Chunk>, change: isize) {
    // SAFETY: what the caller gives up kept it until now.
    let shared = unsafe { &chunk.as_ref().shared };
    // Release: what this thread did with its cell comes before the end of the chunk, or its next
    // use. Acquire: if the end is ours, we come after all the others.
    if shared.fetch_add(change, Ordering::AcqRel) + change == 0 {
        // SAFETY: the count is zero and stays so: the store has traded its bias.
        unsafe { free_chunk(chunk) };
    }
}

/// # Safety
/// The chunk is in no list, and no cell of it is in use.
unsafe fn free_chunk(chunk: NonNull<Chunk>) {
    // SAFETY: promised by the caller; the head was written when the chunk was allocated.
    unsafe {
        // Loom watches no end of a cell.
        #[cfg(loom)]
        chunk.as_ref().taken.set(0);
        chunk.drop_in_place();
        dealloc(chunk.as_ptr().cast(), CHUNK);
    }
}

/// A ring of chunks, each of which is alive and in no other list.
struct List(Cell<*const Chunk>);

impl List {
    const fn new() -> Self {
        List(Cell::new(ptr::null()))
    }

    #[inline]
    fn first(&self) -> Option<NonNull<Chunk>> {
        NonNull::new(self.0.get().cast_mut())
    }

    #[inline]
    fn has_one(&self) -> bool {
        self.first()
            // SAFETY: chunks in a list are alive.
            .is_some_and(|first| unsafe { first.as_ref() }.next.get() == first.as_ptr())
    }

    /// Puts `chunk` in front.
    fn push(&self, chunk: NonNull<Chunk>) {
        let this = chunk.as_ptr().cast_const();
        // SAFETY: the caller's chunk is alive, and so are those in the list.
        unsafe {
            let head = chunk.as_ref();
            match self.first() {
                None => {
                    head.next.set(this);
                    head.previous.set(this);
                }
                Some(first) => {
                    let last = first.as_ref().previous.get();
                    head.next.set(first.as_ptr());
                    head.previous.set(last);
                    first.as_ref().previous.set(this);
                    (*last).next.set(this);
                }
            }
        }
        self.0.set(this);
    }

    /// Takes out `chunk`, which is in this list.
    fn remove(&self, chunk: NonNull<Chunk>) {
        let this = chunk.as_ptr().cast_const();
        // SAFETY: chunks in a list are alive.
        unsafe {
            let (next, previous) = (chunk.as_ref().next.get(), chunk.as_ref().previous.get());
            (*next).previous.set(previous);
            (*previous).next.set(next);
            if self.0.get() == this {
                self.0.set(if next == this { ptr::null() } else { next });
            }
        }
    }

    /// Puts the first chunk behind all others.
    fn rotate(&self) {
        if let Some(first) = self.first() {
            // SAFETY: chunks in a list are alive.
            self.0.set(unsafe { first.as_ref() }.next.get());
        }
    }

    /// The last one first; none is added or removed meanwhile.
    fn oldest_first(&self) -> impl Iterator<Item = NonNull<Chunk>> {
        let before = |chunk: NonNull<Chunk>| {
            // SAFETY: chunks in a list are alive.
            NonNull::new(unsafe { chunk.as_ref() }.previous.get().cast_mut())
        };
        let first = self.first();
        std::iter::successors(first.and_then(before), move |&chunk| {
            before(chunk).filter(|_| Some(chunk) != first)
        })
    }

    #[cfg(all(test, not(loom)))]
    fn len(&self) -> usize {
        self.oldest_first().count()
    }
}
