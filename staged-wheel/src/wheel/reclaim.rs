//! The records with the policy by which their pages go back.
//!
//! Peaks are watched over windows of some four seconds. When two windows in a row needed less than
//! half of the pages, the page table is swept once, a few entries a poll, and pages without timers
//! leave. What the sweep has to pass over is left to the next window, so that polls in between pay
//! nothing. A population that swings within a window keeps its pages and never meets the allocator.
//!
//! Payloads are moved in and out and never dropped here (but with the queue itself): the drop
//! of a payload may run a task's destructor, and that one may come back to this queue.

#[cfg(any(test, fuzzing))]
mod tests;

use super::entry::PAGE;
use super::slab::Slab;
use crate::peak::Peak;

#[derive(Debug)]
pub(super) struct ReclaimingSlab<T> {
    pub(super) slab: Slab<T>,
    live: Peak,
    /// End of the current window.
    review_ns: u64,
    /// Pages to end with while giving back.
    pages_wanted: usize,
    /// The pages below this one are still to be swept; zero when no sweep is under way.
    unswept: usize,
}

impl<T> ReclaimingSlab<T> {
    /// Allocates nothing.
    pub(super) fn new() -> Self {
        ReclaimingSlab {
            slab: Slab::new(),
            live: Peak::default(),
            review_ns: 0,
            pages_wanted: 1,
            unswept: 0,
        }
    }

    /// Gives unused pages back, a few at a time. True at the end of a window: the moment for others
    /// to look at their buffers as well.
    #[inline]
    pub(super) fn review(&mut self, now_ns: u64) -> bool {
        self.live.note(self.slab.live());
        let is_window_over = now_ns >= self.review_ns;
        if is_window_over {
            self.close_window(now_ns);
        }
        if self.is_sweeping() {
            self.sweep();
        }
        is_window_over
    }

    /// When [`review`](Self::review) has something to do again.
    #[inline]
    pub(super) fn next_review_ns(&self) -> u64 {
        if self.is_sweeping() {
            0
        } else {
            self.review_ns
        }
    }

    /// Whether pages would go back, were the timers no more than they are for two windows.
    #[inline]
    pub(super) fn has_excess(&self) -> bool {
        self.is_sweeping() || self.slab.resident_pages() > pages_with_slack(self.slab.live())
    }

    #[inline]
    pub(super) fn is_sweeping(&self) -> bool {
        self.unswept > 0
    }

    #[cold]
    fn close_window(&mut self, now_ns: u64) {
        self.review_ns = now_ns.saturating_add(WINDOW_NS);
        self.live.note(self.slab.take_peak());
        let peak = self.live.roll(self.slab.live());
        self.pages_wanted = pages(peak);
        let has_excess = self.slab.resident_pages() > pages_with_slack(peak);
        self.slab.drain_pages(has_excess);
        // A sweep that polls have been too rare to end goes on, or the lower pages would never be
        // seen.
        if !has_excess {
            self.unswept = 0;
        } else if !self.is_sweeping() {
            self.unswept = self.slab.table_len();
        }
    }

    fn sweep(&mut self) {
        let mut pages_left = GIVE_BACK_PER_POLL;
        for _ in 0..SWEEP_PER_POLL {
            let is_done = self.slab.resident_pages() <= self.pages_wanted;
            if is_done {
                self.slab.drain_pages(false);
            }
            // A population that grows again has ended the draining.
            if !self.slab.is_draining() {
                self.unswept = 0;
            }
            if pages_left == 0 || !self.is_sweeping() {
                break;
            }
            // Downwards, so that the end of the page table comes free.
            self.unswept = self.unswept.min(self.slab.table_len()) - 1;
            if self.slab.give_back(self.unswept) {
                pages_left -= 1;
            }
        }
        self.slab.trim_table();
    }
}

/// What so many timers need; one page stays in any case.
fn pages(timers: usize) -> usize {
    timers.div_ceil(PAGE).max(1)
}

/// Half of the pages is the slack of a growing queue. An empty one needs no slack.
fn pages_with_slack(timers: usize) -> usize {
    if timers == 0 { 1 } else { 2 * pages(timers) }
}

/// How long a page must have stayed unused, at least: time enough for any burst to come again.
const WINDOW_NS: u64 = 1 << 32;
const GIVE_BACK_PER_POLL: usize = 16;
/// Entries of the page table that one poll looks at.
const SWEEP_PER_POLL: usize = 64;
