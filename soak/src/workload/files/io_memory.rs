//! Whether the executor has all of its I/O memory back.
//!
//! Two buffers that share all of it between them can be had only if no other is taken; else one of
//! them comes from the ordinary allocator, and lies elsewhere.

use std::time::Duration;

use glommio::allocate_dma_buffer;
use glommio::timer::sleep;

use crate::check::checker::Checker;
use crate::check::invariants::Invariant;
use crate::clock;

/// The I/O memory of the executor that runs here.
#[derive(Debug)]
pub(super) struct IoMemory {
    /// `None`: it could not be told where it is, so nothing is judged.
    addresses: Option<[usize; 2]>,
}

impl IoMemory {
    /// Before anything has been read or written.
    pub(super) fn new() -> Self {
        let first = allocate_dma_buffer(1).as_ptr().addr();
        let whole = whole();
        let mut parts = whole.into_iter().zip(BYTES);
        let is_of_it = parts.any(|(start, bytes)| (start..start + bytes).contains(&first));
        Self {
            addresses: is_of_it.then_some(whole),
        }
    }

    /// While nothing is under way: what was given up a moment ago is waited for.
    pub(super) async fn judge(&self, checker: &Checker) {
        let Some(addresses) = self.addresses else {
            return;
        };
        let asked = clock::now();
        let mut is_back = whole() == addresses;
        while !is_back && clock::since(asked) < checker.control.patience() {
            sleep(LOOK_EVERY).await;
            is_back = whole() == addresses;
        }
        checker.holds(Invariant::IoMemory, is_back, || {
            "a buffer is taken although nothing reads or writes".to_owned()
        });
    }
}

/// Where the buffers lie that take everything.
fn whole() -> [usize; 2] {
    let buffers = BYTES.map(allocate_dma_buffer);
    buffers.each_ref().map(|buffer| buffer.as_ptr().addr())
}

/// Ten megabytes, which an executor has unless its builder is told otherwise, in powers of two.
const BYTES: [usize; 2] = [8 << 20, 2 << 20];

const LOOK_EVERY: Duration = Duration::from_millis(2);
