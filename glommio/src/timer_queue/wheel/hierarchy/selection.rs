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
//!   windows       │ 1 │   2   │       3       │   of some 512 timers, twice as many, ...
//!                 └───┴───────┴───────────────┘
//!   pass 2, 3, 4    ▼      ▼          ▼           one for each: out of the lists, into the run
//! ```
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
//! Costs: so many looks a poll at most, and moves as in any poll; a few kilobytes for the sample.

use super::Wheel;
use crate::timer_queue::epoch::NEVER;
use crate::timer_queue::wheel::entry::{NIL, Order, PAGE, PAGE_BITS, Record, RecordState};
use crate::timer_queue::wheel::level::Levels;
use crate::timer_queue::wheel::slab::Slab;
use crate::timer_queue::wheel::tick::Tick;

/// A selection of what is due at a time.
#[derive(Debug)]
pub(super) struct Selection {
    until_ns: u64,
    /// Nothing up to here is in a list.
    after: Order,
    /// What the pass under way takes, or nothing while it takes a sample.
    window: Option<Order>,
    /// The page that the pass has come to.
    page: usize,
    looks_left: usize,
    /// Polls that it took.
    polls: u32,
    sample: Vec<Order>,
    /// Of so many timers that were looked at, one is in the sample.
    gap: usize,
    seed: u64,
    /// Where in the sample the window ends, and by how much the next one is longer.
    end: usize,
    step: usize,
}

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
        let looks = (PAGE + LOOKS_PER_SAMPLED_PAGE) * slab.table_len();
        let after = self.listed_after();
        let is_due = slot.min_ns() <= now_ns && after.deadline_ns < now_ns;
        if !is_due || self.selection_pause > 0 || polls <= looks.div_ceil(self.looks_per_poll()) {
            return false;
        }
        self.near_until_ns = self.near_until_ns.max(now_ns);
        self.selection = Some(Box::new(Selection {
            until_ns: now_ns,
            after,
            window: None,
            page: 0,
            looks_left: self.looks_per_poll(),
            polls: 1,
            sample: Vec::with_capacity(SAMPLE),
            gap: 1,
            seed: now_ns,
            end: 0,
            step: 1,
        }));
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
            return false;
        }
        let Some(window) = selection.window else {
            let is_over = selection.take_sample(slab);
            self.selection = Some(selection);
            return is_over;
        };
        let is_over = self.take_window(slab, &mut selection, window, moves_left);
        if is_over {
            self.selected = window;
            selection.after = window;
        }
        if is_over && window == Order::last_at(selection.until_ns) {
            self.selection_pause = selection.polls;
        } else {
            if is_over {
                selection.open_window();
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
        let (mut head, mut tail, mut taken) = (NIL, NIL, 0);
        let mut is_stuck = false;
        while !is_stuck && selection.page < slab.table_len() {
            if selection.looks_left == 0 || *moves_left == 0 {
                break;
            }
            let number = selection.page;
            let mut positions = [0; PAGE];
            let found = selection.look_through(slab, window, &mut positions);
            for &position in &positions[..found] {
                let index = (number << PAGE_BITS) as u32 | u32::from(position);
                if *moves_left == 0 {
                    is_stuck = true;
                    break;
                }
                *moves_left -= 1;
                let place = slab.at(index).place;
                self.levels.unlink(slab, index, place);
                slab.link_mut(index).next = NIL;
                match tail {
                    NIL => head = index,
                    tail => slab.link_mut(tail).next = index,
                }
                tail = index;
                taken += 1;
            }
            selection.page += usize::from(!is_stuck);
        }
        while taken > 0 {
            let gathered = self.tick.gather(slab, (0, NEVER), head, taken);
            head = gathered.rest;
            taken -= gathered.visited;
        }
        !is_stuck && selection.page >= slab.table_len()
    }

    #[inline]
    fn looks_per_poll(&self) -> usize {
        self.moves_per_poll.saturating_mul(LOOKS_PER_MOVE).max(PAGE)
    }
}

impl Selection {
    /// Takes a sample of what is due. True when it has been through all pages, and the first window
    /// is open.
    fn take_sample<T>(&mut self, slab: &Slab<T>) -> bool {
        while self.page < slab.table_len() {
            if self.looks_left == 0 {
                return false;
            }
            self.looks_left = self.looks_left.saturating_sub(LOOKS_PER_SAMPLED_PAGE);
            let number = self.page;
            self.page += 1;
            let Some(memory) = slab.page(number) else {
                continue;
            };
            for position in (self.random(STRIDE)..PAGE).step_by(STRIDE) {
                let deadline_ns = memory.links[position].deadline_ns;
                if deadline_ns > self.after.deadline_ns && deadline_ns <= self.until_ns {
                    self.draw(deadline_ns, &memory.records[position]);
                }
            }
        }
        self.sample.sort_unstable();
        // What they stand for are so many timers each.
        self.step = FIRST_WINDOW.div_ceil(STRIDE * self.gap);
        self.open_window();
        true
    }

    /// Puts a timer into the sample, or one of several.
    fn draw<T>(&mut self, deadline_ns: u64, record: &Record<T>) {
        if record.state != RecordState::Listed || self.random(self.gap) > 0 {
            return;
        }
        if self.sample.len() == SAMPLE {
            let mut is_kept = false;
            self.sample.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.gap *= 2;
        }
        self.sample.push(Order {
            deadline_ns,
            seq: record.seq,
        });
    }

    /// A number below `end`, so that no pattern in the order of arming is met (Knuth's MMIX).
    fn random(&mut self, end: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005);
        self.seed = self.seed.wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) as usize % end
    }

    /// The next window, with which a pass begins.
    fn open_window(&mut self) {
        self.end += self.step.max(1);
        self.step *= 2;
        let border = self.sample.get(self.end).copied();
        // Of equal timers in the sample, the next are not before the last window's end.
        let border = border.filter(|&border| border > self.after);
        self.window = Some(border.unwrap_or(Order::last_at(self.until_ns)));
        self.page = 0;
    }

    /// Where on the page the timers of `window` are that are in a list, and how many.
    #[inline]
    fn look_through<T>(&mut self, slab: &Slab<T>, window: Order, found: &mut [u8; PAGE]) -> usize {
        let mut looks = PAGE;
        let mut count = 0;
        if let Some(memory) = slab.page(self.page) {
            let first_ns = self.after.deadline_ns;
            let span_ns = window.deadline_ns - first_ns;
            for (position, link) in memory.links.iter().enumerate() {
                if link.deadline_ns.wrapping_sub(first_ns) > span_ns {
                    continue;
                }
                looks += LOOKS_PER_RECORD;
                let record = &memory.records[position];
                let order = Order {
                    deadline_ns: link.deadline_ns,
                    seq: record.seq,
                };
                if record.state == RecordState::Listed && order <= window {
                    found[count] = position as u8;
                    count += 1;
                }
            }
        }
        self.looks_left = self.looks_left.saturating_sub(looks);
        count
    }
}

/// Deadlines that a poll may look at for each record that it may move: reading them in the order in
/// which they lie takes less than a nanosecond each.
const LOOKS_PER_MOVE: usize = 128;
/// A look at a record, after one at its deadline, takes as long as so many.
const LOOKS_PER_RECORD: usize = 2;
/// Of so many timers one is looked at for the sample.
const STRIDE: usize = if PAGE < 32 { PAGE } else { 32 };
/// That they lie apart costs more.
const LOOKS_PER_SAMPLED_PAGE: usize = 8 * (PAGE / STRIDE);
/// Timers in a sample, at most.
const SAMPLE: usize = 512;
/// Timers that are to be in the first window.
const FIRST_WINDOW: usize = 512;
