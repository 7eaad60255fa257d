//! How a [`Wheel`] fires the first of a burst before it has moved the rest.
//!
//! A hundred thousand timers in a slot, in no order, take hundreds of polls to move. Meanwhile each poll takes the first of
//! them out of the lists.
//!
//! Of each page a place in the order is known before which none of its timers comes: 16 bytes in a table. So a poll
//! looks at the timers of the [`PAGES_PER_POLL`] pages whose places come first, and takes all that come before the
//! place of the next page, [`BATCH`] at most: no other page can have one of them.
//!
//! ```text
//!   places     12    40    17    95    31        of the two first pages, 12 and 17,
//!            ┌─────┐     ┌─────┐     ┆           all timers up to 31
//!            │▪▪ ▪ │     │▪   ▪│     ┆
//!            └─────┘     └─────┘     ┆
//! ```
//!
//! What is left in the lists comes after these, so they fire wherever the cursor stands.

use super::super::super::tuning::{MOVES_PER_POLL, PAGES_PER_POLL};
use super::super::entry::{Key, NIL, Order, RecordState, split};
use super::super::slab::Slab;
use super::{Poll, Wheel};
use crate::epoch::NEVER;

impl Wheel {
    /// Takes the first timers that are due out of the lists, once a poll. True if more may fire then.
    #[cold]
    #[inline(never)]
    pub(super) fn take_overdue<T>(&mut self, slab: &mut Slab<T>, poll: &mut Poll) -> bool {
        let before = self.listed_from;
        if !std::mem::replace(&mut poll.may_scan_pages, false) || before >= poll.due {
            return false;
        }
        let (pages, next) = first_pages(slab);
        // Where what is not taken begins.
        let mut end = next.min(poll.due);
        let mut found = [Key::NONE; 2 * BATCH];
        let mut count = 0;
        for (first, number) in pages {
            if number == NIL || first > end {
                break;
            }
            let number = number as usize;
            slab.set_first(number, Order::LAST);
            let mut behind_ns = NEVER;
            for index in slab.indices(number) {
                let deadline_ns = slab.link(index).deadline_ns;
                if deadline_ns > end.deadline_ns {
                    // Maybe that of a timer which is gone: then the place is earlier than need be.
                    behind_ns = behind_ns.min(deadline_ns);
                    continue;
                }
                let record = slab.at(index);
                if record.state != RecordState::Listed {
                    continue;
                }
                let key = Key {
                    deadline_ns,
                    seq: record.seq,
                    index,
                };
                if key.order() >= end {
                    slab.lower_first(number, key.order());
                    continue;
                }
                found[count] = key;
                count += 1;
                if count == found.len() {
                    count = keep_first(slab, &mut found, &mut end);
                }
            }
            slab.lower_first(number, Order::first_at(behind_ns));
        }
        if count > BATCH {
            count = keep_first(slab, &mut found[..count], &mut end);
        }
        for key in &found[..count] {
            self.displace(slab, key.index);
            self.near.push(slab, key.index);
        }
        self.listed_from = before.max(end);
        self.listed_from > before
    }
}

/// The pages whose timers may come first, in order, and where those of the others begin.
fn first_pages<T>(slab: &Slab<T>) -> ([(Order, u32); PAGES_PER_POLL], Order) {
    let mut pages = [(Order::LAST, NIL); PAGES_PER_POLL];
    let mut next = Order::LAST;
    for (number, &first) in slab.firsts().iter().enumerate() {
        if first >= pages[PAGES_PER_POLL - 1].0 {
            next = next.min(first);
            continue;
        }
        next = pages[PAGES_PER_POLL - 1].0;
        let at = pages.partition_point(|&(it, _)| it < first);
        pages[at..].rotate_right(1);
        pages[at] = (first, number as u32);
    }
    (pages, next)
}

/// Keeps the first [`BATCH`] of more keys, and says where the others begin.
fn keep_first<T>(slab: &mut Slab<T>, found: &mut [Key], end: &mut Order) -> usize {
    found.select_nth_unstable(BATCH);
    *end = found[BATCH].order();
    for key in &found[BATCH..] {
        slab.lower_first(split(key.index).0, key.order());
    }
    BATCH
}

/// Timers that are taken at once.
const BATCH: usize = MOVES_PER_POLL / 2;
