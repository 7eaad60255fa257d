//! A queue of waiting futures, first in, first out, from which any may leave.
//!
//! ```text
//!              notify_oldest                leave
//!   Waiting ──────────────────▶ Notified ──────────▶ (gone)
//!    ▲ │ ▲                         │
//!    │ │ └── wait: nothing there ──┘
//!    │ └──── leave ─────▶ (gone)
//!   wait
//! ```
//!
//! The waiting entries form a list through a slab, oldest first. A notified entry has left the
//! list, yet keeps its place in the slab until its future takes it away: so a future that is
//! dropped without acting on its notification learns of it, and passes it on. A notified future
//! that finds nothing, because another was quicker, waits again in the order in which it came.
//! Entries that wait again are in a heap by their tickets, and not in the list: they are older than
//! all in the list, since the oldest is notified first.
//!
//! # A notified waiter that does not take the value passes the wake on
//!
//! The rule for all that wait in such a queue. A waiter may be dropped, or kept and never polled
//! again: a stream, or a future that another arm of a `select!` has won against.
//!
//! - Where one waiter is notified for each value (channels whose values go to one receiver), one that
//!   is dropped notifies the next, and for one that is kept `channels/local_channel/line.rs` does when
//!   the tasks that were woken had time to look.
//! - Where all are notified (watch, broadcast, gate, cancellation), nothing has to be passed on.
//! - Where the waiter was handed what it waits for (semaphore and locks), it owns that until it is
//!   dropped; what is handed over is not taken back. See the module `sync`.
//!
//! # Invariants
//!
//! An entry is in the list or in the heap exactly while it waits; the list is ordered by tickets, and
//! the top of the heap waits. A key is removed once, by its owner, so keys are never stale. No waker
//! is cloned, woken or dropped in here, as all three may run code that comes back: those that leave
//! are handed out, for the caller to deal with when nothing is borrowed.
//!
//! Cost: every operation is a handful of loads and stores, but for waiting again, which is logarithmic
//! in the number of those that do. It allocates only when more futures wait than before. A queue that
//! becomes empty keeps memory for [`KEPT_WHEN_EMPTY`] futures, among them the entry that was taken
//! away last, as if notified.

#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;
use std::task::{Context, Poll, Waker};

use slab::Slab;

use crate::panic;

/// See the module. Each entry carries a `T`: what it waits for.
#[derive(Debug)]
pub(crate) struct WaitQueue<T = ()> {
    entries: Slab<Entry<T>>,
    /// Ends of the list, or [`NONE`].
    oldest: u32,
    newest: u32,
    /// Those that wait again, by ticket; and behind the first, some that do not any more.
    again: Option<Box<Again>>,
    waiting: u32,
    /// The entry that was taken away last is kept for the next: a future that waits over and over
    /// fills in little. Or [`NONE`].
    spare: u32,
    next_ticket: u64,
}

/// In a box, as nearly no queue has one, and channels have several queues on a cache line or two.
type Again = BinaryHeap<Reverse<(u64, u32)>>;

const NONE: u32 = u32::MAX;

/// A queue with memory for more futures gives it back when the last one leaves.
const KEPT_WHEN_EMPTY: usize = 64;

/// Names one entry. Not `Clone`: its holder owns the entry.
#[derive(Debug)]
pub(crate) struct WaitKey(u32);

impl WaitKey {
    /// Tells entries of one queue apart that are there at the same time.
    #[inline]
    pub(crate) fn id(&self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug)]
struct Entry<T> {
    ticket: u64,
    wants: T,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Waiting {
        waker: Waker,
        /// Neighbours in the list, or [`NONE`].
        older: u32,
        newer: u32,
    },
    /// In the heap.
    WaitingAgain {
        waker: Waker,
    },
    Notified,
}

/// How an entry left.
#[derive(Debug)]
#[must_use = "a notification that is not acted on has to be passed on, a waker to be dropped"]
pub(crate) enum Removed<T = ()> {
    /// It was still waiting; its waker, to be dropped when nothing is borrowed.
    Waiting(Waker),
    /// It had been notified; what it waited for.
    Notified(T),
}

/// The waker of one poll, which [`poll_waiting`] clones when it has to be kept.
pub(crate) struct PollWaker<'a> {
    waker: &'a Waker,
    clone: Option<Waker>,
    is_wanted: bool,
    /// One that left the queue, to be dropped when nothing is borrowed.
    left: Option<Waker>,
}

/// Polls `look`, which borrows the state that its future waits for, and [waits](WaitQueue::wait) if
/// there is nothing yet. The waker is cloned and dropped between such calls, with nothing borrowed.
#[inline]
pub(crate) fn poll_waiting<R>(
    cx: &Context<'_>,
    look: impl FnMut(&mut PollWaker<'_>) -> Poll<R>,
) -> Poll<R> {
    poll_first(cx, false, look)
}

/// As [`poll_waiting`], with an own waker from the beginning if the future `is_new` here: one that
/// has just found nothing, and so will need it.
#[inline]
pub(crate) fn poll_first<R>(
    cx: &Context<'_>,
    is_new: bool,
    mut look: impl FnMut(&mut PollWaker<'_>) -> Poll<R>,
) -> Poll<R> {
    let mut waker = PollWaker {
        waker: cx.waker(),
        clone: is_new.then(|| cx.waker().clone()),
        is_wanted: false,
        left: None,
    };
    loop {
        let polled = look(&mut waker);
        if polled.is_ready() || !mem::take(&mut waker.is_wanted) {
            return polled;
        }
        waker.clone = Some(cx.waker().clone());
    }
}

/// Nothing is borrowed now. What was found is handed over whatever the destructors of wakers do.
impl Drop for PollWaker<'_> {
    #[inline]
    fn drop(&mut self) {
        let spare = self.clone.take();
        let left = self.left.take();
        if spare.is_some() || left.is_some() {
            drop_wakers([spare, left]);
        }
    }
}

#[cold]
fn drop_wakers(wakers: [Option<Waker>; 2]) {
    for waker in wakers {
        panic::contain("the destructor of a waker panicked", || drop(waker));
    }
}

impl PollWaker<'_> {
    /// Whether `known` wakes the same task.
    #[inline]
    pub(crate) fn is_same(&self, known: &Waker) -> bool {
        known.will_wake(self.waker)
    }

    /// An own waker; without one, `look` is called again with one.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Waker> {
        self.is_wanted = self.clone.is_none();
        self.clone.take()
    }

    /// Keeps `waker` until nothing is borrowed, and drops it then.
    #[inline]
    pub(crate) fn drop_later(&mut self, waker: Waker) {
        debug_assert!(self.left.is_none(), "one waker leaves in a poll");
        self.left = Some(waker);
    }
}

impl<T: Copy> Default for WaitQueue<T> {
    fn default() -> Self {
        WaitQueue::new()
    }
}

impl<T: Copy> WaitQueue<T> {
    pub(crate) const fn new() -> Self {
        WaitQueue {
            entries: Slab::new(),
            oldest: NONE,
            newest: NONE,
            again: None,
            waiting: 0,
            spare: NONE,
            next_ticket: 0,
        }
    }

    /// How many wait and were not notified.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting as usize
    }

    /// Whether there is no entry, waiting or notified.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.len() == usize::from(self.spare != NONE)
    }

    /// What the oldest waiting entry waits for.
    #[inline]
    pub(crate) fn oldest(&mut self) -> Option<&mut T> {
        match self.first() {
            NONE => None,
            index => Some(&mut self.entry(index).wants),
        }
    }

    /// Notifies the oldest waiting entry, with what it is to learn from [`finish`](Self::finish).
    #[inline]
    pub(crate) fn notify_oldest_with(&mut self, wants: T) -> Option<Waker> {
        match self.first() {
            NONE => None,
            index => {
                self.entry(index).wants = wants;
                self.unlink(index)
            }
        }
    }

    /// The oldest waiting entry, or [`NONE`].
    #[inline]
    fn first(&self) -> u32 {
        match self.first_again() {
            None => self.oldest,
            Some((_, index)) => index,
        }
    }

    /// The oldest of those that wait again, with its ticket.
    #[inline]
    fn first_again(&self) -> Option<(u64, u32)> {
        let Reverse(first) = *self.again.as_ref()?.peek()?;
        Some(first)
    }

    /// Has the future with this key wait, or go on waiting, and be woken by the waker of this poll:
    /// behind all others if it is new, else in its place. False if nothing was done yet,
    /// because an own waker is needed, and [`poll_waiting`] has to fetch one.
    pub(crate) fn wait(
        &mut self,
        key: &mut Option<WaitKey>,
        waker: &mut PollWaker<'_>,
        wants: T,
    ) -> bool {
        let Some(WaitKey(index)) = *key else {
            let Some(own) = waker.take() else {
                return false;
            };
            *key = Some(WaitKey(self.push(wants, own)));
            return true;
        };
        if let Stage::Waiting { waker: known, .. } | Stage::WaitingAgain { waker: known } =
            &mut self.entry(index).stage
        {
            if waker.is_same(known) {
                return true;
            }
            let Some(own) = waker.take() else {
                return false;
            };
            waker.drop_later(mem::replace(known, own));
            return true;
        }
        let Some(own) = waker.take() else {
            return false;
        };
        self.wait_again(index, own);
        true
    }

    /// Gives a future its place as if it had been notified: it looks again by itself. False if
    /// there are others.
    pub(crate) fn enter_alone(&mut self, key: &mut Option<WaitKey>, wants: T) -> bool {
        debug_assert!(key.is_none(), "a future has one place");
        if !self.is_empty() {
            return false;
        }
        *key = Some(WaitKey(self.insert(wants, Stage::Notified)));
        true
    }

    /// A new entry, behind all others.
    #[inline]
    fn push(&mut self, wants: T, waker: Waker) -> u32 {
        let older = self.newest;
        let index = self.insert(
            wants,
            Stage::Waiting {
                waker,
                older,
                newer: NONE,
            },
        );
        *self.newer_link(older) = index;
        self.newest = index;
        self.waiting += 1;
        index
    }

    /// A new entry, which is not put into the list.
    #[inline]
    fn insert(&mut self, wants: T, stage: Stage) -> u32 {
        let entry = Entry {
            ticket: self.next_ticket,
            wants,
            stage,
        };
        self.next_ticket += 1;
        match mem::replace(&mut self.spare, NONE) {
            NONE => self.grow(entry),
            spare => {
                *self.entry(spare) = entry;
                spare
            }
        }
    }

    #[cold]
    fn grow(&mut self, entry: Entry<T>) -> u32 {
        let index = self.entries.insert(entry);
        assert!(index < NONE as usize, "fewer than 2^32 futures wait");
        index as u32
    }

    #[inline]
    fn entry(&mut self, index: u32) -> &mut Entry<T> {
        &mut self.entries[index as usize]
    }

    /// Has a notified entry wait where it was before, ahead of all that are newer.
    fn wait_again(&mut self, index: u32, waker: Waker) {
        let entry = self.entry(index);
        entry.stage = Stage::WaitingAgain { waker };
        let ticket = entry.ticket;
        let again = self.again.get_or_insert_default();
        again.push(Reverse((ticket, index)));
        self.waiting += 1;
    }

    /// Takes what does not wait any more from the top of the heap.
    #[cold]
    fn tidy_again(&mut self) {
        while let Some((ticket, index)) = self.first_again()
            && !self.waits_again(ticket, index)
            && let Some(again) = &mut self.again
        {
            again.pop();
        }
    }

    /// Whether the entry with this ticket does; its place may have gone to another.
    fn waits_again(&self, ticket: u64, index: u32) -> bool {
        let entry = self.entries.get(index as usize);
        entry
            .is_some_and(|it| it.ticket == ticket && matches!(it.stage, Stage::WaitingAgain { .. }))
    }

    /// What a notified entry waited for; `None` if it was not notified.
    #[inline]
    pub(crate) fn notified_with(&self, key: &WaitKey) -> Option<T> {
        let entry = &self.entries[key.id()];
        matches!(entry.stage, Stage::Notified).then_some(entry.wants)
    }

    /// Whether the entry was notified.
    #[inline]
    pub(crate) fn is_notified(&self, key: &WaitKey) -> bool {
        matches!(self.entries[key.id()].stage, Stage::Notified)
    }

    /// Notifies the oldest waiting entry; its waker is for the caller to wake.
    #[inline]
    pub(crate) fn notify_oldest(&mut self) -> Option<Waker> {
        match self.first() {
            NONE => None,
            index => self.unlink(index),
        }
    }

    /// Takes the entry of a future away, if it has one.
    #[inline]
    pub(crate) fn leave(&mut self, key: &mut Option<WaitKey>) -> Option<Removed<T>> {
        let WaitKey(index) = key.take()?;
        let left = match self.unlink(index) {
            Some(waker) => Removed::Waiting(waker),
            None => Removed::Notified(self.entry(index).wants),
        };
        self.free(index);
        Some(left)
    }

    /// As [`leave`](Self::leave), for a future whose poll is done. What it waited for, if it had
    /// been notified.
    #[inline]
    pub(crate) fn finish(
        &mut self,
        key: &mut Option<WaitKey>,
        waker: &mut PollWaker<'_>,
    ) -> Option<T> {
        let key = key.take()?;
        let notified = self.notified_with(&key);
        if notified.is_none() {
            self.stop_waiting(key.0, waker);
        }
        self.free(key.0);
        notified
    }

    /// For one that found what it waited for without having been notified.
    #[cold]
    fn stop_waiting(&mut self, index: u32, waker: &mut PollWaker<'_>) {
        if let Some(known) = self.unlink(index) {
            waker.drop_later(known);
        }
    }

    /// Gives the place of a notified entry back.
    #[inline]
    fn free(&mut self, index: u32) {
        if self.spare == NONE {
            self.spare = index;
        } else {
            self.entries.remove(index as usize);
        }
        if self.entries.capacity() > KEPT_WHEN_EMPTY && self.entries.len() == 1 && self.is_empty() {
            self.shrink();
        }
    }

    /// Gives memory back that no entry needs.
    #[cold]
    pub(crate) fn shrink(&mut self) {
        let spare = mem::replace(&mut self.spare, NONE);
        self.entries.try_remove(spare as usize);
        self.entries.shrink_to_fit();
        self.again.take_if(|again| again.is_empty());
    }

    /// For how many futures there is memory.
    #[cfg(test)]
    fn capacity(&self) -> usize {
        let again = self.again.as_ref().map_or(0, |it| it.capacity());
        self.entries.capacity().max(again)
    }

    /// Has a waiting entry wait no longer and makes it a notified one; leaves one that is that
    /// already alone.
    #[inline]
    fn unlink(&mut self, index: u32) -> Option<Waker> {
        let stage = &mut self.entry(index).stage;
        let waker = match mem::replace(stage, Stage::Notified) {
            Stage::Notified => return None,
            Stage::Waiting {
                waker,
                older,
                newer,
            } => {
                *self.newer_link(older) = newer;
                *self.older_link(newer) = older;
                waker
            }
            Stage::WaitingAgain { waker } => {
                self.tidy_again();
                waker
            }
        };
        self.waiting -= 1;
        Some(waker)
    }

    /// Where the link from `index` to its newer neighbour is kept; the head of the list for
    /// [`NONE`].
    #[inline]
    fn newer_link(&mut self, index: u32) -> &mut u32 {
        if index == NONE {
            return &mut self.oldest;
        }
        match &mut self.entry(index).stage {
            Stage::Waiting { newer, .. } => newer,
            _ => unreachable!("an entry beside it in the list is in the list"),
        }
    }

    /// Where the link from `index` to its older neighbour is kept; the tail of the list for
    /// [`NONE`].
    #[inline]
    fn older_link(&mut self, index: u32) -> &mut u32 {
        if index == NONE {
            return &mut self.newest;
        }
        match &mut self.entry(index).stage {
            Stage::Waiting { older, .. } => older,
            _ => unreachable!("an entry beside it in the list is in the list"),
        }
    }
}
