//! The memory for tasks, against a list of the cells in use.

#![allow(unsafe_code)]

use std::alloc::Layout;
use std::thread;

use proptest::prelude::*;

use crate::task::cells::{CellStore, SizeClass, TaskCell};

/// A cell whose every byte is `mark`.
struct Marked {
    cell: TaskCell,
    class: SizeClass,
    bytes: usize,
    mark: u8,
}

// SAFETY: a cell in use belongs to whoever has it.
unsafe impl Send for Marked {}

impl Marked {
    fn new(store: &CellStore, bytes: usize, mark: u8) -> Self {
        let layout = Layout::from_size_align(bytes, 16).expect("a valid layout");
        let class = SizeClass::of(layout).expect("small enough for a cell");
        assert!(class.cell_bytes() >= bytes);
        let cell = store.allocate(class);
        assert!(cell.memory.cast::<u128>().is_aligned());
        // SAFETY: the cell has that many bytes.
        unsafe { cell.memory.write_bytes(mark, bytes) };
        Marked {
            cell,
            class,
            bytes,
            mark,
        }
    }

    /// Frees it, having seen that it is whole.
    fn free(self, is_owner: bool) {
        // SAFETY: the bytes were written when the cell was allocated.
        let bytes = unsafe { std::slice::from_raw_parts(self.cell.memory.as_ptr(), self.bytes) };
        assert!(
            bytes.iter().all(|&byte| byte == self.mark),
            "a cell in use was written to"
        );
        // SAFETY: it is in use, and not after this.
        unsafe { self.cell.free(self.class, is_owner) };
    }
}

#[derive(Clone, Debug)]
enum Step {
    Allocate { bytes: usize },
    Free { which: usize, is_owner: bool },
    FreeAll,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        // A few sizes, so that chunks fill up.
        20 => prop::sample::select(vec![1, 64, 80, 300, 500, 512]).prop_map(|bytes| Step::Allocate { bytes }),
        10 => any::<(usize, bool)>().prop_map(|(which, is_owner)| Step::Free { which, is_owner }),
        1 => Just(Step::FreeAll),
    ]
}

proptest! {
    /// No cell is given out twice, whoever frees it; and the last free cell takes the memory along,
    /// also after the store.
    #[test]
    fn cells_in_use_are_left_alone(steps in prop::collection::vec(step(), 1..600)) {
        let store = CellStore::new();
        let mut in_use = Vec::new();
        let mut mark = 0_u8;
        for step in steps {
            match step {
                Step::Allocate { bytes } => {
                    mark = mark.wrapping_add(1);
                    in_use.push(Marked::new(&store, bytes, mark));
                }
                Step::Free { which, is_owner } if !in_use.is_empty() => {
                    let index = which % in_use.len();
                    in_use.swap_remove(index).free(is_owner);
                }
                Step::Free { .. } => {}
                Step::FreeAll => {
                    in_use.drain(..).for_each(|cell: Marked| cell.free(true));
                }
            }
        }
        drop(store);
        in_use.into_iter().for_each(|cell| cell.free(false));
    }
}

#[test]
fn the_memory_of_a_peak_goes_back() {
    let store = CellStore::new();
    let peak: Vec<_> = (0..10_000).map(|_| Marked::new(&store, 128, 1)).collect();
    assert!(store.chunks() > 100);
    peak.into_iter().for_each(|cell| cell.free(true));
    assert!(store.chunks() <= 1, "{} chunks are kept", store.chunks());
}

#[test]
fn cells_freed_on_other_threads_are_used_again() {
    let store = CellStore::new();
    for _ in 0..200 {
        let cells: Vec<_> = (0..100).map(|_| Marked::new(&store, 128, 2)).collect();
        thread::scope(|scope| {
            scope.spawn(|| cells.into_iter().for_each(|cell| cell.free(false)));
        });
    }
    // Two chunks hold a hundred, and two generations of them may be under way.
    assert!(
        store.chunks() <= 8,
        "{} chunks for 100 cells",
        store.chunks()
    );
}

#[test]
fn cells_of_survivors_are_filled_up_first() {
    let store = CellStore::new();
    let mut cells: Vec<_> = (0..6_000).map(|_| Marked::new(&store, 128, 3)).collect();
    let chunks = store.chunks();
    let mut survivors = Vec::new();
    for (index, cell) in cells.drain(..).enumerate() {
        if index % 10 == 0 {
            survivors.push(cell);
        } else {
            cell.free(true);
        }
    }
    cells.extend((0..5_400).map(|_| Marked::new(&store, 128, 4)));
    assert_eq!(
        store.chunks(),
        chunks,
        "what was free is used before more is asked for"
    );
    cells
        .into_iter()
        .chain(survivors)
        .for_each(|cell| cell.free(true));
}
