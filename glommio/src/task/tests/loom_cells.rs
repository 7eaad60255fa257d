//! The memory for tasks under every interleaving of the owner with threads that free cells.
//!
//! Loom's allocator sees chunks that are never freed, and its cells see accesses that are not
//! ordered.

#![allow(unsafe_code)]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::task::cells::{CellStore, SizeClass, TaskCell};

const CLASS: SizeClass = SizeClass::LARGEST;

/// A cell on its way to another thread, and a stand-in for its bytes that loom watches.
struct Foreign(TaskCell, Arc<UnsafeCell<()>>);

// SAFETY: a cell in use belongs to whoever has it, and with it the stand-in.
unsafe impl Send for Foreign {}

impl Foreign {
    fn free(self) {
        self.1.with_mut(|_| ());
        drop(self.1);
        // SAFETY: in use, and not after this.
        unsafe { self.0.free(CLASS, false) };
    }
}

/// The store goes while two threads free the last cells of its only chunk.
#[run_test(loom::model)]
fn loom_the_last_free_cell_frees_the_chunk() {
    let store = CellStore::new();
    let threads = [(); 2].map(|()| {
        let cell = Foreign(store.allocate(CLASS), Arc::new(UnsafeCell::new(())));
        thread::spawn(move || cell.free())
    });
    // SAFETY: in use, and not after this; the store is alive.
    unsafe { store.allocate(CLASS).free(CLASS, true) };
    drop(store);
    for thread in threads {
        thread.join().expect("freeing does not panic");
    }
}

/// A chunk whose cells were freed on another thread is used again only after that thread is done
/// with them.
#[run_test(loom::model)]
fn loom_cells_are_used_again_after_the_other_thread() {
    let store = CellStore::new();
    let bytes = Arc::new(UnsafeCell::new(()));
    let cells: Vec<_> = (0..CLASS.cells()).map(|_| store.allocate(CLASS)).collect();
    let last = Foreign(cells[0], Arc::clone(&bytes));
    for &cell in &cells[1..] {
        // SAFETY: in use, and not after this.
        unsafe { cell.free(CLASS, false) };
    }
    let thread = thread::spawn(move || last.free());
    // From the same chunk if the thread is done, from another if not.
    let cell = store.allocate(CLASS);
    if cell.memory == cells[0].memory {
        bytes.with_mut(|_| ());
    }
    // SAFETY: in use, and not after this; the store is alive.
    unsafe { cell.free(CLASS, true) };
    thread.join().expect("freeing does not panic");
    drop(store);
}
