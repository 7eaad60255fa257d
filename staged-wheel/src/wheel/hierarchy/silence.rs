//! How a [`Wheel`] fires the first of a crowd before it has moved the rest.
//!
//! A slot with a hundred thousand timers takes hundreds of polls to empty. A crowd that is expected
//! is made ready before it is due (`ahead.rs`), but an executor that has computed for long, or a
//! machine that was suspended, finds it as it was armed. The first of it are then *selected*: the
//! links of all timers lie in pages, 16 bytes each, and are read far faster than timers are moved.
//!
//! ```text
//!   pages      ┌─▪───▪▪─┐┌▪──▪────┐┌──▪▪▪▪▪─┐     what is due
//!   pass 1     └────────┘└────────┘└────────┘     a sample of it, whose quantiles are the borders of
//!                 ┌───┬───────┬───────────────┐
//!   windows       │ 1 │   2   │       3       │   of about 512 timers, twice as many, ...
//!                 └───┴───────┴───────────────┘
//!   pass 2, 3, 4    ▼      ▼          ▼           one for each: out of the lists, into the run
//! ```
//!
//! Before that come a few small windows that need no sample. Of each page a place in the order is known
//! before which none of its timers comes. On the eight pages where it is earliest are all timers up to the latest of
//! these places, and at least as many as pages; in a crowd that was armed at random hardly more. So the first
//! timers fire after a look at eight pages, however many there are, and a pass leaves out the pages that begin
//! behind its window.
//!
//! A pass deals the timers of its window into buckets of the run, which are not sorted before they fire.
//!
//! When the pass for a window has ended, what is left in the lists comes after it, so all of it can
//! fire, wherever the cursor stands. The pass for the next one goes on meanwhile: a poll takes twice
//! as many timers as it fires, so a window twice as long is ready in time. Eight passes or so sort
//! all of a crowd, each timer being moved once.
//!
//! Nothing slips in behind a pass: from its begin on, a timer that is armed for a time up to its end
//! goes to the heap. What is cancelled or re-armed meanwhile leaves its list, or its key in the run,
//! as ever. The sample decides how many timers a window has, and nothing else.
//!
//! Costs: so many looks a poll at most, and moves as in any poll; a few kilobytes for the sample, which stay for the next one.

use super::Wheel;
use super::selection::Selection;
use crate::wheel::entry::{Order, PAGE, PAGE_BITS};
use crate::wheel::level::Levels;
use crate::wheel::slab::Slab;
use crate::wheel::tick::Tick;

impl<const ROW: usize, const WIDE: usize, const ROWS: usize> Wheel<ROW, WIDE, ROWS> {
    /// Begins with a selection of what is due at `now_ns`, if that fires the next timer sooner than
    /// to move all that is in front. To be called when a poll has spent its moves before it found
    /// one.
    #[cold]
    pub(super) fn begin_selection<T>(&mut self, slab: &Slab<T>, now_ns: u64) -> bool {
        if self.selection.is_some() {
            return false;
        }
        // Selections take no more of the polls than what they are to spare.
        self.selection_pause = self.selection_pause.saturating_sub(1);
        let Some((at, _)) = self.first_slot() else {
            return false;
        };
        let slot = self.levels.slot(at);
        let last = Levels::<ROW, WIDE, ROWS>::last(at);
        let moves = if last < Tick::of(now_ns) {
            1
        } else {
            1 + usize::from(at.level)
        };
        let polls = (moves * slot.len() as usize) / self.moves_per_poll;
        let looks = Selection::looks_to_first(slab);
        let after = self.listed_after();
        let is_due = slot.min_ns() <= now_ns && after.deadline_ns < now_ns;
        if !is_due || self.selection_pause > 0 || polls <= looks.div_ceil(self.looks_per_poll()) {
            return false;
        }
        self.near_until_ns = self.near_until_ns.max(now_ns);
        let memory = std::mem::take(&mut self.selection_memory);
        let selection = Selection::new(memory, now_ns, after, self.looks_per_poll());
        self.selection = Some(selection);
        true
    }

    /// Everything in the lists comes after this.
    #[inline]
    pub(super) fn listed_after(&self) -> Order {
        Order::last_at(self.cursor.last_ns()).max(self.selected)
    }

    /// A poll begins.
    #[inline]
    pub(super) fn refresh_selection(&mut self) {
        let looks = self.looks_per_poll();
        if let Some(selection) = &mut self.selection {
            selection.looks_left = looks;
            selection.polls += 1;
        }
    }

    /// Goes on with a selection, if one is under way. True if a pass has ended.
    pub(super) fn select<T>(&mut self, slab: &mut Slab<T>, moves_left: &mut usize) -> bool {
        let Some(mut selection) = self.selection.take() else {
            return false;
        };
        if Tick::of(selection.until_ns) <= self.cursor {
            // All of it has been moved.
            self.selection_memory = selection.into_memory();
            return false;
        }
        let Some(window) = selection.window else {
            let is_over = selection.find_window(slab);
            self.selection = Some(selection);
            return is_over;
        };
        let is_over = self.take_window(slab, &mut selection, window, moves_left);
        if is_over {
            self.selected = window;
        }
        if is_over && window == Order::last_at(selection.until_ns) {
            self.selection_pause = selection.polls;
            self.selection_memory = selection.into_memory();
        } else {
            if is_over {
                selection.close_window(window);
            }
            self.selection = Some(selection);
        }
        is_over
    }

    /// Moves the timers of `window` from the lists to the run. True when it has been through all
    /// pages.
    fn take_window<T>(
        &mut self,
        slab: &mut Slab<T>,
        selection: &mut Selection,
        window: Order,
        moves_left: &mut usize,
    ) -> bool {
        while selection.page < slab.table_len() {
            if selection.looks_left == 0 || *moves_left == 0 {
                return false;
            }
            let number = selection.page;
            if slab.firsts()[number] > window {
                selection.looks_left -= 1;
                selection.page += 1;
                continue;
            }
            let mut positions = [0; PAGE];
            let (found, first) = selection.look_through(slab, window, &mut positions);
            let positions = &positions[..found];
            let index_of = |position: u8| (number << PAGE_BITS) as u32 | u32::from(position);
            for (nth, &position) in positions.iter().enumerate() {
                if *moves_left == 0 {
                    return false;
                }
                *moves_left -= 1;
                if let Some(&soon) = positions.get(nth + NEIGHBOURS_AHEAD) {
                    slab.prefetch_neighbours(index_of(soon));
                }
                let index = index_of(position);
                let place = slab.at(index).place;
                self.levels.unlink(slab, index, place);
                let bucket = selection.bucket(slab.link(index).deadline_ns);
                self.tick.deal(slab, index, bucket, moves_left);
            }
            slab.set_first(number, first);
            selection.page += 1;
        }
        true
    }

    #[inline]
    fn looks_per_poll(&self) -> usize {
        self.moves_per_poll.saturating_mul(LOOKS_PER_MOVE).max(PAGE)
    }
}

/// Deadlines that a poll may look at for each record that it may move: reading them in the order in
/// which they lie takes less than a nanosecond each.
const LOOKS_PER_MOVE: usize = 16;
/// How many timers ahead of the one that is taken the neighbours in its list are asked for: they lie
/// anywhere.
const NEIGHBOURS_AHEAD: usize = 8;
