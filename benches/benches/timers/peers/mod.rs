//! Published timer queues, each behind the same trait as ours and used as its documentation says.

use std::task::Waker;

use crate::columns::{Column, timer_queue};
use crate::workload::waker;

mod bitwheel;
mod delay_queue;
mod glommio_ng;
mod hash_wheel;
mod nexus;

/// A column for each.
pub fn columns() -> [Column; 5] {
    [
        timer_queue::<glommio_ng::Wheel>(false),
        timer_queue::<nexus::Wheel>(false),
        timer_queue::<bitwheel::Wheel>(false),
        timer_queue::<delay_queue::Delays>(false),
        timer_queue::<hash_wheel::Wheel>(false),
    ]
}

/// Wakers to hand out in place of those that a queue drops when it cancels. Dropping is its own
/// cost; making another one is not, so that is done beforehand.
struct Spare {
    original: Waker,
    clones: Vec<Waker>,
}

impl Spare {
    fn new() -> Self {
        Spare {
            original: waker(),
            clones: Vec::new(),
        }
    }

    fn lay_in(&mut self, count: usize) {
        let missing = count.saturating_sub(self.clones.len());
        self.clones
            .extend(std::iter::repeat_n(self.original.clone(), missing));
    }

    #[inline]
    fn take(&mut self) -> Waker {
        self.clones.pop().unwrap_or_else(|| self.original.clone())
    }
}
