//! A lock-free ring between one producing and one consuming thread.
//!
//! Nothing here waits, and no executor is needed: this is the ring below
//! [`shared_channel`](super::shared_channel), for programs that bring their own way to wait.
//!
//! ```
//! use std::thread;
//! use glommio::channels::spsc_queue;
//!
//! let (producer, consumer) = spsc_queue::make(4);
//! let thread = thread::spawn(move || {
//!     for number in 0..100_u32 {
//!         while producer.try_push(number).is_some() {
//!             thread::yield_now();
//!         }
//!     }
//! });
//! let mut expected = 0;
//! while expected < 100 {
//!     match consumer.try_pop() {
//!         Some(number) => {
//!             assert_eq!(number, expected);
//!             expected += 1;
//!         }
//!         None => thread::yield_now(),
//!     }
//! }
//! # thread.join().unwrap();
//!
//! let (producer, consumer) = spsc_queue::make(3); // rounded up to four
//! for number in 0..4 {
//!     assert_eq!(producer.try_push(number), None);
//! }
//! assert_eq!(producer.try_push(4), Some(4), "it is full");
//! assert_eq!((consumer.try_pop(), producer.free_space()), (Some(0), 1));
//! assert!(!producer.disconnect() && consumer.producer_disconnected());
//! assert!(!consumer.disconnect() && producer.consumer_disconnected());
//! assert_eq!(producer.try_push(5), Some(5), "too late");
//! ```
//!
//! # Implementation
//!
//! ```text
//!   slots   [ . . v v v v . . ]        capacity: a power of two
//!                 ▲       ▲
//!               head     tail          count up forever; the slot is the number modulo the capacity
//!            (consumer) (producer)
//! ```
//!
//! Each side writes one index and reads the other's (Lamport, "Specifying Concurrent Program
//! Modules", ACM TOPLAS 1983), on cache lines of their own. A side's line also holds what it asks
//! at each value, such as whether the other side has disconnected. Each keeps the last value that
//! it has read of the other's, and reads it again only if by that the ring is full or empty (Lee,
//! Bu, Chandranmenon, "A lock-free, cache-efficient shared ring buffer", ANCS 2009): while the ring
//! is neither, a push touches no line that the consumer writes, except for the slot.
//!
//! Invariants, with all numbers modulo 2⁶⁴:
//!
//! 1. `head ≤ tail ≤ head + capacity`; slots from `head` up to `tail` hold values, all others hold
//!    none.
//! 2. Only the producer writes `tail`, and slots from `tail` up to `head + capacity`. It stores
//!    `tail` with release after it has filled the slot, and the consumer loads it with acquire
//!    before it empties that.
//! 3. Only the consumer writes `head`, and takes from slots from `head` up to `tail`. It stores
//!    `head` with release after it has emptied the slot, and the producer loads it with acquire
//!    before it fills that again.
//! 4. There is one producer and one consumer, neither is `Sync` nor `Clone`, and no user code
//!    runs inside of their methods: each of the two roles is played by one call at a time. A consumer
//!    that retires leaves its role to the producer.
//!
//! # A consumer that retires
//!
//! A value may be stored just when the consumer goes and drops what is there. So that none is kept
//! until the producer goes too, the word `role` says who drops it:
//!
//! ```text
//!             producer, after it has stored and has seen that the consumer is gone
//!            ┌──────────────────────────▶
//!   CONSUMER                               ASKED          CONSUMER, ASKED: the consumer takes
//!      │     ◀──────────────────────────┘                 PRODUCERS: only the producer does
//!      │      consumer, before it looks again
//!      └── consumer, when it has found nothing ──▶ PRODUCERS
//! ```
//!
//! All of these are read-modify-writes of one word. If the producer's comes first, the consumer's
//! last one fails, it acquires the value, and looks again. If the consumer's last one comes first,
//! the producer reads `PRODUCERS`, acquires the consumer's index, and takes the value itself. How it
//! is made sure that the producer sees that the consumer is gone is for the channel on top of this.
//!
//! Cost: a push or a pop is a handful of loads and stores, with no read-modify-write.

#![allow(unsafe_code)]

#[cfg(all(test, not(loom)))]
mod tests;

use std::cell::Cell;
use std::mem::MaybeUninit;

use crate::loom::UnsafeCell;
use crate::loom::sync::Arc;
use crate::loom::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use crate::panic::drop_all;

/// A ring that holds `capacity` values, rounded up to a power of two: at least one. Its memory is
/// taken at once.
///
/// # Panics
///
/// Panics if a `usize` cannot hold the rounded capacity, or if there is not so much memory.
pub fn make<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    let (producer, consumer) = make_ends(capacity, || ());
    (Producer { end: producer }, Consumer { end: consumer })
}

/// As [`make`], with a value on the line of each side.
pub(super) fn make_ends<T, B>(
    capacity: usize,
    beside: impl Fn() -> B,
) -> (ProducerEnd<T, B>, ConsumerEnd<T, B>) {
    let capacity = capacity
        .checked_next_power_of_two()
        .expect("the capacity of a queue can be rounded up to a power of two");
    let slots = (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit()));
    let slots = slots.collect();
    let lines = Arc::new(Lines {
        producer: Line::new(beside()),
        consumer: Line::new(beside()),
    });
    let ring = Arc::new(Ring {
        slots,
        lines: Arc::clone(&lines),
    });
    let producer = ProducerEnd {
        ring: Arc::clone(&ring),
        lines: Arc::clone(&lines),
        tail: Cell::new(0),
        known_head: Cell::new(0),
        is_disconnected: Cell::new(false),
    };
    let consumer = ConsumerEnd {
        ring,
        lines,
        head: Cell::new(0),
        known_tail: Cell::new(0),
        is_disconnected: Cell::new(false),
        is_retired: Cell::new(false),
    };
    (producer, consumer)
}

/// The half that stores values.
///
/// Dropping it does not [disconnect](Self::disconnect). Values that were stored and not taken are
/// dropped when both halves are gone.
pub struct Producer<T> {
    end: ProducerEnd<T, ()>,
}

/// The half that takes values.
///
/// Dropping it does not [disconnect](Self::disconnect). Values that were stored and not taken are
/// dropped when both halves are gone.
pub struct Consumer<T> {
    end: ConsumerEnd<T, ()>,
}

/// [`Producer`], with a `B` on the line of each side.
pub(super) struct ProducerEnd<T, B> {
    ring: Arc<Ring<T, B>>,
    lines: Arc<Lines<B>>,
    /// That of the line, which only this side writes.
    tail: Cell<usize>,
    /// That of the other line, when it was read last.
    known_head: Cell<usize>,
    is_disconnected: Cell<bool>,
}

/// [`Consumer`], with a `B` on the line of each side.
pub(super) struct ConsumerEnd<T, B> {
    ring: Arc<Ring<T, B>>,
    lines: Arc<Lines<B>>,
    /// That of the line, which only this side writes.
    head: Cell<usize>,
    /// That of the other line, when it was read last.
    known_tail: Cell<usize>,
    is_disconnected: Cell<bool>,
    /// Whether the producer has the role of the consumer.
    is_retired: Cell<bool>,
}

struct Ring<T, B> {
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    lines: Arc<Lines<B>>,
}

/// What both sides know besides the slots.
pub(super) struct Lines<B> {
    /// How many values were ever stored.
    pub(super) producer: Line<B>,
    /// How many values were ever taken.
    pub(super) consumer: Line<B>,
}

/// Two cache lines, which the processor fetches in pairs, so that what one side writes is on none
/// that the other does.
#[repr(align(128))]
pub(super) struct Line<B> {
    index: AtomicUsize,
    /// Whether the other side has disconnected: it writes that once, and this side asks at each
    /// value.
    is_other_gone: AtomicBool,
    /// Of the consumer's line: who takes values. See the module.
    role: AtomicU8,
    pub(super) beside: B,
}

/// The values of `role`; [`ASKED`] is a bit, which means nothing together with [`PRODUCERS`].
const CONSUMER: u8 = 0;
const ASKED: u8 = 1;
const PRODUCERS: u8 = 2;

impl<B> Lines<B> {
    /// How many values there are, more or less: the other side may be moving. Asked by either side.
    pub(super) fn len(&self) -> usize {
        // Each side knows its own index, and the other's at least as it was when it looked last: the head is not ahead.
        let head = self.consumer.index.load(Ordering::Relaxed);
        let tail = self.producer.index.load(Ordering::Relaxed);
        tail.wrapping_sub(head)
    }
}

impl<B> Line<B> {
    fn new(beside: B) -> Self {
        Line {
            index: AtomicUsize::new(0),
            is_other_gone: AtomicBool::new(false),
            role: AtomicU8::new(CONSUMER),
            beside,
        }
    }
}

// SAFETY: the slots are all that is shared without atomics, and by invariants 2 to 4 a slot is
// touched by one thread at a time: the producer's until it stores `tail`, then the consumer's until
// it stores `head`. So a value moves from one thread to the other, for which it has to be `Send`,
// and is never seen by two.
unsafe impl<T: Send, B: Sync + Send> Sync for Ring<T, B> {}

impl<T, B> Ring<T, B> {
    #[inline]
    fn capacity(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    fn slot(&self, index: usize) -> &UnsafeCell<MaybeUninit<T>> {
        &self.slots[index & (self.slots.len() - 1)]
    }

    /// Takes the oldest value, if there is one.
    ///
    /// # Safety
    ///
    /// The caller has the role of the consumer, and what was stored and taken before happened before
    /// this.
    unsafe fn take_oldest(&self) -> Option<T> {
        let Lines { producer, consumer } = &*self.lines;
        let head = consumer.index.load(Ordering::Relaxed);
        if head == producer.index.load(Ordering::Relaxed) {
            return None;
        }
        let value = self.slot(head).with_mut(|slot| {
            // SAFETY: by the contract of this function: 1. The slot holds a value (invariant 1), and
            // both indices are as they are now. 2. It is read once: the index moves on below, and no
            // other thread or call takes.
            unsafe { (*slot).assume_init_read() }
        });
        let index = &consumer.index;
        index.store(head.wrapping_add(1), Ordering::Relaxed);
        Some(value)
    }
}

impl<T> Producer<T> {
    /// Stores `v`. Returns it if the ring is full, or if the consumer has disconnected.
    #[inline]
    pub fn try_push(&self, v: T) -> Option<T> {
        self.end.try_push(v)
    }

    /// Tells the consumer that nothing more will come. Storing is possible all the same.
    ///
    /// Returns whether it had been told already.
    pub fn disconnect(&self) -> bool {
        self.end.disconnect()
    }

    /// Whether the consumer has disconnected.
    #[inline]
    pub fn consumer_disconnected(&self) -> bool {
        self.end.consumer_disconnected()
    }

    /// How many values can be stored. The consumer may be freeing more space at this moment.
    pub fn free_space(&self) -> usize {
        self.end.free_space()
    }
}

impl<T> Consumer<T> {
    /// Takes the oldest value, if there is one; also after either side has disconnected.
    #[inline]
    pub fn try_pop(&self) -> Option<T> {
        self.end.try_pop()
    }

    /// Tells the producer that nothing more will be taken: it can store no more. Taking is possible
    /// all the same.
    ///
    /// Returns whether it had been told already.
    pub fn disconnect(&self) -> bool {
        self.end.disconnect()
    }

    /// Whether the producer has disconnected. There may be values left.
    ///
    /// Values that it stored before are there for the [`try_pop`](Self::try_pop) that follows this.
    #[inline]
    pub fn producer_disconnected(&self) -> bool {
        self.end.producer_disconnected()
    }
}

impl<T, B> ProducerEnd<T, B> {
    #[inline]
    pub(super) fn try_push(&self, v: T) -> Option<T> {
        if self.is_full() || self.consumer_disconnected() {
            return Some(v);
        }
        let tail = self.tail.get();
        self.ring.slot(tail).with_mut(|slot| {
            // SAFETY: 1. The slot holds no value and the consumer is done with it (invariants 1 and
            // 3), for `tail` is less than the capacity away from `known_head`, which
            // was loaded with acquire and never exceeds `head`.
            // 2. No other call of the producer is at it (invariant 4).
            unsafe { (*slot).write(v) };
        });
        self.tail.set(tail.wrapping_add(1));
        // Release: who sees the index sees the value.
        let index = &self.lines.producer.index;
        index.store(tail.wrapping_add(1), Ordering::Release);
        None
    }

    /// Whether there is no room, by the consumer's index as it is now.
    #[inline]
    fn is_full(&self) -> bool {
        let is_full = |head| self.tail.get().wrapping_sub(head) == self.ring.capacity();
        is_full(self.known_head.get()) && is_full(self.look_at_head())
    }

    fn look_at_head(&self) -> usize {
        // Acquire: the consumer is done with the slots before that.
        let head = self.lines.consumer.index.load(Ordering::Acquire);
        self.known_head.set(head);
        head
    }

    pub(super) fn disconnect(&self) -> bool {
        // Release: what was stored before is there for a consumer that sees this.
        let flag = &self.lines.consumer.is_other_gone;
        flag.store(true, Ordering::Release);
        self.is_disconnected.replace(true)
    }

    /// Whether this side has disconnected.
    #[inline]
    pub(super) fn has_disconnected(&self) -> bool {
        self.is_disconnected.get()
    }

    #[inline]
    pub(super) fn consumer_disconnected(&self) -> bool {
        let flag = &self.lines.producer.is_other_gone;
        flag.load(Ordering::Acquire)
    }

    /// Once the consumer is gone: has what came too late for it dropped, by the consumer, which is
    /// about to look again, or here. If destructors panic, the first panic goes on when all is done.
    #[cold]
    pub(super) fn drop_late(&self) {
        debug_assert!(self.consumer_disconnected(), "else it is not too late");
        let role = &self.lines.consumer.role;
        if role.fetch_or(ASKED, Ordering::AcqRel) & PRODUCERS != 0 {
            // SAFETY: the role was given up with release, after all that the consumer has taken,
            // for good; the values were stored by this side, which is played by one thread. No value
            // is dropped inside of the call.
            drop_all(|| unsafe { self.ring.take_oldest() });
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.ring.capacity()
    }

    pub(super) fn free_space(&self) -> usize {
        self.ring.capacity() - self.tail.get().wrapping_sub(self.look_at_head())
    }

    /// Whether at least half of the room is free.
    pub(super) fn is_half_free(&self) -> bool {
        self.free_space() >= self.ring.capacity() / 2
    }

    #[inline]
    pub(super) fn lines(&self) -> &Arc<Lines<B>> {
        &self.lines
    }
}

impl<T, B> ConsumerEnd<T, B> {
    #[inline]
    pub(super) fn try_pop(&self) -> Option<T> {
        let head = self.head.get();
        if head == self.known_tail.get() && (self.is_retired.get() || head == self.look_at_tail()) {
            return None;
        }
        let value = self.ring.slot(head).with_mut(|slot| {
            // SAFETY: 1. The slot holds a value (invariants 1 and 2), for `head` has not come to
            // `known_tail`, which was loaded with acquire and never exceeds `tail`. 2.
            // It is read once: the index moves on below, and no other call of the
            // consumer is at it (invariant 4).
            unsafe { (*slot).assume_init_read() }
        });
        self.head.set(head.wrapping_add(1));
        // Release: who sees the index may fill the slot again.
        let index = &self.lines.consumer.index;
        index.store(head.wrapping_add(1), Ordering::Release);
        Some(value)
    }

    fn look_at_tail(&self) -> usize {
        // Acquire: the values before that are stored.
        let tail = self.lines.producer.index.load(Ordering::Acquire);
        self.known_tail.set(tail);
        tail
    }

    pub(super) fn disconnect(&self) -> bool {
        let flag = &self.lines.producer.is_other_gone;
        flag.store(true, Ordering::Release);
        self.is_disconnected.replace(true)
    }

    #[inline]
    pub(super) fn producer_disconnected(&self) -> bool {
        let flag = &self.lines.consumer.is_other_gone;
        flag.load(Ordering::Acquire)
    }

    pub(super) fn capacity(&self) -> usize {
        self.ring.capacity()
    }

    /// Drops all values and leaves those that come later to the producer. `wait` is called once,
    /// when there are none, and waits until each that was stored by a producer that took this side
    /// to be there can be seen. This end is to be [disconnected](Self::disconnect), and takes nothing
    /// afterwards. If destructors panic, the first panic goes on when all is done.
    pub(super) fn retire(&self, wait: impl FnOnce()) {
        debug_assert!(self.is_disconnected.get(), "values would come on and on");
        let mut wait = Some(wait);
        drop_all(|| {
            loop {
                let value = self.try_pop();
                if value.is_some() {
                    return value;
                }
                if let Some(wait) = wait.take() {
                    wait();
                } else if self.gives_up_role() {
                    return None;
                }
            }
        });
    }

    /// Leaves the role to the producer, unless that has stored something meanwhile.
    fn gives_up_role(&self) -> bool {
        if self.is_retired.get() {
            return true;
        }
        let role = &self.lines.consumer.role;
        // Release: what was taken, for the producer, which is the consumer from here on.
        let given_up =
            role.compare_exchange(CONSUMER, PRODUCERS, Ordering::Release, Ordering::Relaxed);
        self.is_retired.set(given_up.is_ok());
        if given_up.is_err() {
            // Acquire: what was stored before the producer asked.
            role.swap(CONSUMER, Ordering::Acquire);
        }
        given_up.is_ok()
    }

    #[inline]
    pub(super) fn lines(&self) -> &Arc<Lines<B>> {
        &self.lines
    }
}

impl<T, B> Drop for Ring<T, B> {
    fn drop(&mut self) {
        // SAFETY: both halves are gone, and have made what they did known by dropping their
        // references; so both roles are played here.
        drop_all(|| unsafe { self.take_oldest() });
    }
}

impl_debug! { [T] Producer[T], it:
    capacity: it.end.ring.capacity(), free_space: it.free_space(),
    consumer_disconnected: it.consumer_disconnected()
}

impl_debug! { [T] Consumer[T], it:
    capacity: it.end.ring.capacity(), producer_disconnected: it.producer_disconnected(); ..
}
