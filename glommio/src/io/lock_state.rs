//! Whether an open file is locked.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether an open file is locked. The kernel would let its descriptors change the lock from one
/// kind to the other, and the first that unlocks it unlocks it for all.
#[derive(Debug, Default)]
pub(super) struct LockState(AtomicBool);

impl LockState {
    pub(super) fn try_take(&self) -> bool {
        self.0
            .compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    pub(super) fn give_back(&self) {
        self.0.store(false, Ordering::Release);
    }
}
