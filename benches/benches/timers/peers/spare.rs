//! What queues that drop a waker when they cancel are given to arm the next timer with.

use std::task::Waker;

use crate::workload::waker;

/// Wakers to hand out in place of those that a queue drops when it cancels. Dropping is its own
/// cost; making another one is not, so that is done beforehand.
pub(super) struct Spare {
    original: Waker,
    clones: Vec<Waker>,
}

impl Spare {
    pub(super) fn new() -> Self {
        Spare {
            original: waker(),
            clones: Vec::new(),
        }
    }

    pub(super) fn lay_in(&mut self, count: usize) {
        let missing = count.saturating_sub(self.clones.len());
        self.clones
            .extend(std::iter::repeat_n(self.original.clone(), missing));
    }

    #[inline]
    pub(super) fn take(&mut self) -> Waker {
        self.clones.pop().unwrap_or_else(|| self.original.clone())
    }
}
