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
//! ```
//!
//! # Implementation
//!
//! ```text
//!   slots   [ . . v v v v . . ]        capacity: a power of two
//!                 ▲       ▲
//!               head     tail          count up for ever; the slot is the number modulo the capacity
//!            (consumer) (producer)
//! ```
//!
//! Each side writes one index and reads the other's (Lamport, "Specifying Concurrent Program Modules", ACM TOPLAS
//! 1983), on lines of their own. Each keeps the last value that it has read of the other's, and reads it again only
//! if by that the ring is full or empty (Lee, Bu, Chandranmenon, "A lock-free, cache-efficient shared ring buffer",
//! ANCS 2009): while the ring is neither, a push touches no line that the consumer writes, except for the slot.
//!
//! Invariants, with all numbers modulo 2⁶⁴:
//!
//! 1. `head ≤ tail ≤ head + capacity`; slots from `head` up to `tail` hold values, all others hold none.
//! 2. Only the producer writes `tail`, and slots from `tail` up to `head + capacity`. It stores `tail` with release
//!    after it has filled the slot, and the consumer loads it with acquire before it empties that.
//! 3. Only the consumer writes `head`, and takes from slots from `head` up to `tail`. It stores `head` with release
//!    after it has emptied the slot, and the producer loads it with acquire before it fills that again.
//! 4. There is one producer and one consumer, neither is `Sync` nor `Clone`, and no code of others runs inside of
//!    their methods: each of the two roles is played by one call at a time.
//!
//! Cost: a push or a pop is a handful of loads and stores, with no read-modify-write.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::fmt;
use std::mem::MaybeUninit;
use std::panic::resume_unwind;
use std::thread;

use crate::mailbox::loom::UnsafeCell;
use crate::mailbox::loom::sync::Arc;
use crate::mailbox::loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::panic::FirstPanic;

/// A ring that holds `capacity` values, rounded up to a power of two: at least one. Its memory is taken at once.
///
/// # Panics
///
/// Panics if a `usize` cannot hold the rounded capacity, or if there is not so much memory.
///
/// # Examples
///
/// ```
/// let (producer, _consumer) = glommio::channels::spsc_queue::make(3);
/// for number in 0..4 {
///     assert_eq!(producer.try_push(number), None);
/// }
/// assert_eq!(producer.try_push(4), Some(4), "it holds four");
/// ```
pub fn make<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    let capacity = capacity
        .checked_next_power_of_two()
        .expect("the capacity of a queue can be rounded up to a power of two");
    let slots = (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit()));
    let ring = Arc::new(Ring {
        slots: slots.collect(),
        is_producer_disconnected: AtomicBool::new(false),
        is_consumer_disconnected: AtomicBool::new(false),
        tail: Line(AtomicUsize::new(0)),
        head: Line(AtomicUsize::new(0)),
    });
    let producer = Producer {
        ring: Arc::clone(&ring),
        tail: Cell::new(0),
        known_head: Cell::new(0),
    };
    let consumer = Consumer {
        ring,
        head: Cell::new(0),
        known_tail: Cell::new(0),
    };
    (producer, consumer)
}

/// The half that stores values.
///
/// Dropping it does not [disconnect](Self::disconnect). Values that were stored and not taken are dropped when both
/// halves are gone.
pub struct Producer<T> {
    ring: Arc<Ring<T>>,
    /// That of the ring, which only this side writes.
    tail: Cell<usize>,
    /// That of the ring, when it was read last.
    known_head: Cell<usize>,
}

/// The half that takes values.
///
/// Dropping it does not [disconnect](Self::disconnect). Values that were stored and not taken are dropped when both
/// halves are gone.
pub struct Consumer<T> {
    ring: Arc<Ring<T>>,
    /// That of the ring, which only this side writes.
    head: Cell<usize>,
    /// That of the ring, when it was read last.
    known_tail: Cell<usize>,
}

struct Ring<T> {
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    // Beside what never changes: they are read often and written once.
    is_producer_disconnected: AtomicBool,
    is_consumer_disconnected: AtomicBool,
    /// How many values were ever stored; the producer's.
    tail: Line,
    /// How many values were ever taken; the consumer's.
    head: Line,
}

/// Two cache lines, which the processor fetches in pairs, so that what one side writes is on none that the other does.
#[repr(align(128))]
struct Line(AtomicUsize);

// SAFETY: the slots are all that is shared without atomics, and by invariants 2 to 4 a slot is touched by one thread
// at a time: the producer's until it stores `tail`, then the consumer's until it stores `head`. So a value moves from
// one thread to the other, for which it has to be `Send`, and is never seen by two.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    fn capacity(&self) -> usize {
        self.slots.len()
    }

    fn slot(&self, index: usize) -> &UnsafeCell<MaybeUninit<T>> {
        &self.slots[index & (self.slots.len() - 1)]
    }
}

impl<T> Producer<T> {
    /// Stores `v`. Returns it if the ring is full, or if the consumer has disconnected.
    ///
    /// # Examples
    ///
    /// ```
    /// let (producer, consumer) = glommio::channels::spsc_queue::make(1);
    /// assert_eq!(producer.try_push("stored"), None);
    /// assert_eq!(producer.try_push("refused"), Some("refused"));
    /// consumer.try_pop();
    /// consumer.disconnect();
    /// assert_eq!(producer.try_push("too late"), Some("too late"));
    /// ```
    #[inline]
    pub fn try_push(&self, v: T) -> Option<T> {
        if self.is_full() || self.consumer_disconnected() {
            return Some(v);
        }
        let tail = self.tail.get();
        self.ring.slot(tail).with_mut(|slot| {
            // SAFETY: 1. The slot holds no value and the consumer is done with it (invariants 1 and 3), for `tail` is
            // less than the capacity away from `known_head`, which was loaded with acquire and never exceeds `head`.
            // 2. No other call of the producer is at it (invariant 4).
            unsafe { (*slot).write(v) };
        });
        self.tail.set(tail.wrapping_add(1));
        // Release: who sees the index sees the value.
        let index = &self.ring.tail.0;
        index.store(tail.wrapping_add(1), Ordering::Release);
        None
    }

    /// Whether there is no room, by the consumer's index as it is now.
    #[inline]
    fn is_full(&self) -> bool {
        let is_full = |head| self.tail.get().wrapping_sub(head) == self.ring.capacity();
        if !is_full(self.known_head.get()) {
            return false;
        }
        // Acquire: the consumer is done with the slots before that.
        let head = self.ring.head.0.load(Ordering::Acquire);
        self.known_head.set(head);
        is_full(head)
    }

    /// Tells the consumer that nothing more will come. Storing is possible all the same.
    ///
    /// Returns whether it had been told already.
    ///
    /// # Examples
    ///
    /// ```
    /// let (producer, consumer) = glommio::channels::spsc_queue::make::<u8>(1);
    /// assert!(!producer.disconnect());
    /// assert!(producer.disconnect());
    /// assert!(consumer.producer_disconnected());
    /// ```
    pub fn disconnect(&self) -> bool {
        self.ring
            .is_producer_disconnected
            .swap(true, Ordering::AcqRel)
    }

    /// Whether this side has disconnected.
    #[inline]
    pub(super) fn has_disconnected(&self) -> bool {
        self.ring.is_producer_disconnected.load(Ordering::Relaxed)
    }

    /// Whether the consumer has disconnected.
    #[inline]
    pub fn consumer_disconnected(&self) -> bool {
        self.ring.is_consumer_disconnected.load(Ordering::Acquire)
    }

    /// How many values can be stored. The consumer may be making more room at this moment.
    ///
    /// # Examples
    ///
    /// ```
    /// let (producer, consumer) = glommio::channels::spsc_queue::make(4);
    /// producer.try_push(1);
    /// assert_eq!(producer.free_space(), 3);
    /// consumer.try_pop();
    /// assert_eq!(producer.free_space(), 4);
    /// ```
    pub fn free_space(&self) -> usize {
        let head = self.ring.head.0.load(Ordering::Acquire);
        self.known_head.set(head);
        self.ring.capacity() - self.tail.get().wrapping_sub(head)
    }
}

impl<T> Consumer<T> {
    /// Takes the oldest value, if there is one; also after either side has disconnected.
    ///
    /// # Examples
    ///
    /// ```
    /// let (producer, consumer) = glommio::channels::spsc_queue::make(2);
    /// producer.try_push(1);
    /// producer.disconnect();
    /// assert_eq!(consumer.try_pop(), Some(1));
    /// assert_eq!(consumer.try_pop(), None);
    /// ```
    #[inline]
    pub fn try_pop(&self) -> Option<T> {
        let head = self.head.get();
        if head == self.known_tail.get() {
            // Acquire: the values before that are stored.
            let tail = self.ring.tail.0.load(Ordering::Acquire);
            self.known_tail.set(tail);
            if head == tail {
                return None;
            }
        }
        let value = self.ring.slot(head).with_mut(|slot| {
            // SAFETY: 1. The slot holds a value (invariants 1 and 2), for `head` has not come to `known_tail`, which
            // was loaded with acquire and never exceeds `tail`. 2. It is read once: the index moves on below, and no
            // other call of the consumer is at it (invariant 4).
            unsafe { (*slot).assume_init_read() }
        });
        self.head.set(head.wrapping_add(1));
        // Release: who sees the index may fill the slot again.
        let index = &self.ring.head.0;
        index.store(head.wrapping_add(1), Ordering::Release);
        Some(value)
    }

    /// Tells the producer that nothing more will be taken: it can store no more. Taking is possible all the same.
    ///
    /// Returns whether it had been told already.
    pub fn disconnect(&self) -> bool {
        self.ring
            .is_consumer_disconnected
            .swap(true, Ordering::AcqRel)
    }

    /// Whether the producer has disconnected. There may be values left.
    ///
    /// What it stored before is there for the [`try_pop`](Self::try_pop) that follows this.
    #[inline]
    pub fn producer_disconnected(&self) -> bool {
        self.ring.is_producer_disconnected.load(Ordering::Acquire)
    }

    /// Takes and drops all values that are there. If destructors panic, the first panic goes on when all is done.
    pub(super) fn clear(&self) {
        drop_all(|| self.try_pop());
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let tail = self.tail.0.load(Ordering::Acquire);
        let mut head = self.head.0.load(Ordering::Acquire);
        drop_all(|| {
            if head == tail {
                return None;
            }
            let value = self.slot(head).with_mut(|slot| {
                // SAFETY: both halves are gone, and have made what they did known by dropping their references. The
                // slot holds a value (invariant 1), which is read once: the index moves on below.
                unsafe { (*slot).assume_init_read() }
            });
            head = head.wrapping_add(1);
            Some(value)
        });
    }
}

/// Drops what `next` gives, each even if the one before has panicked.
fn drop_all<T>(next: impl FnMut() -> Option<T>) {
    let mut first = FirstPanic::default();
    for value in std::iter::from_fn(next) {
        first.catch(|| drop(value));
    }
    // Where another panic unwinds, this one ends: see the drop of `FirstPanic`.
    if !thread::panicking()
        && let Some(payload) = first.take()
    {
        resume_unwind(payload);
    }
}

impl<T> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer")
            .field("capacity", &self.ring.capacity())
            .field("free_space", &self.free_space())
            .field("consumer_disconnected", &self.consumer_disconnected())
            .finish()
    }
}

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("capacity", &self.ring.capacity())
            .field("producer_disconnected", &self.producer_disconnected())
            .finish_non_exhaustive()
    }
}

/// The indices go round: a queue that has seen almost as many values as a `usize` counts works on.
#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn indices_wrap() {
        let (producer, consumer) = make(4);
        let start = usize::MAX - 5;
        for index in [&producer.tail, &producer.known_head] {
            index.set(start);
        }
        for index in [&consumer.head, &consumer.known_tail] {
            index.set(start);
        }
        let ring = &producer.ring;
        for side in [&ring.tail, &ring.head] {
            side.0.store(start, Ordering::Relaxed);
        }
        let mut queued = std::collections::VecDeque::new();
        for number in 0..40_usize {
            if number % 3 < 2 {
                let has_room = queued.len() < 4;
                assert_eq!(producer.try_push(number).is_none(), has_room);
                if has_room {
                    queued.push_back(number);
                }
            } else {
                assert_eq!(consumer.try_pop(), queued.pop_front());
            }
            assert_eq!(producer.free_space(), 4 - queued.len());
        }
    }
}
