//! The ring between two threads, and against a plain queue.

use std::collections::VecDeque;

use glommio::channels::spsc_queue::{Consumer, Producer, make};
use proptest::prelude::*;

use crate::common::assert_not;
use crate::common::prelude::*;
use crate::payload::{Alive, Payload, dropping};

#[test]
fn a_capacity_that_cannot_be_rounded_up_panics() {
    let message = panic_of(|| make::<()>(usize::MAX));
    assert!(message.contains("power of two"), "{message}");
}

#[test]
fn neither_half_can_be_cloned_or_shared() {
    assert_not!(Clone: Producer<u8>, Consumer<u8>);
    assert_not!(Sync: Producer<u8>, Consumer<u8>);
}

#[test]
fn dropping_a_half_disconnects_nothing() {
    let (producer, consumer) = make::<u8>(1);
    drop(producer);
    assert!(!consumer.producer_disconnected());
    let (producer, consumer) = make::<u8>(1);
    drop(consumer);
    assert!(!producer.consumer_disconnected());
    assert_eq!(producer.try_push(1), None);
}

#[test]
fn values_left_are_dropped_with_the_second_half_although_some_panic() {
    for consumer_first in [true, false] {
        let alive = Alive::default();
        let (producer, consumer) = make(16);
        for number in 1..=11 {
            assert!(producer.try_push(alive.payload(number)).is_none());
        }
        let halves: [Box<dyn std::any::Any>; 2] = if consumer_first {
            [Box::new(consumer), Box::new(producer)]
        } else {
            [Box::new(producer), Box::new(consumer)]
        };
        let [first, second] = halves;
        drop(first);
        assert_eq!(alive.count(), 11);
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(second)));
        assert!(dropped.is_err(), "numbers 5 and 10 panic");
        assert_eq!(alive.count(), 0);
    }
}

#[test]
fn values_left_are_dropped_during_a_panic() {
    let alive = Alive::default();
    let (producer, consumer) = make(16);
    for number in 1..=11 {
        assert!(producer.try_push(alive.payload(number)).is_none());
    }
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        let _halves = (producer, consumer);
        crate::common::polled::quiet_panic();
    }));
    assert!(panicked.is_err());
    assert_eq!(alive.count(), 0);
}

#[test]
fn printing_needs_nothing_of_the_values() {
    struct Plain;
    let (producer, consumer) = make(2);
    assert!(producer.try_push(Plain).is_none());
    let printed = format!("{producer:?} {consumer:?}");
    assert!(printed.contains("free_space: 1"), "{printed}");
}

#[run_test]
fn threads_hand_over_each_value_once_and_in_order() {
    for capacity in [1, 2, 64] {
        let alive = Alive::default();
        let (producer, consumer) = make(capacity);
        // A thread that yields on a busy machine comes back after milliseconds.
        let count = operations().min(2_000 * capacity as u64);
        let thread = {
            let alive = alive.clone();
            thread::spawn(move || {
                for number in 0..count {
                    // None is a multiple of 5: their destructors panic.
                    let mut value = alive.payload(5 * number + 1);
                    while let Some(refused) = producer.try_push(value) {
                        value = refused;
                        thread::yield_now();
                    }
                }
                producer.disconnect();
            })
        };
        let mut next = 0;
        loop {
            let is_over = consumer.producer_disconnected();
            match consumer.try_pop() {
                Some(payload) => {
                    assert_eq!(payload.number, 5 * next + 1);
                    next += 1;
                }
                None if is_over => break,
                None => thread::yield_now(),
            }
        }
        assert_eq!(next, count);
        thread.join().unwrap();
        assert_eq!(alive.count(), 0);
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Push,
    Pop,
    Look,
    Disconnect(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        20 => Just(Step::Push),
        20 => Just(Step::Pop),
        5 => Just(Step::Look),
        1 => any::<bool>().prop_map(Step::Disconnect),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn agrees_with_a_plain_queue(asked in 0..9_usize, steps in steps()) {
        let capacity = asked.next_power_of_two();
        let alive = Alive::default();
        let (producer, consumer) = make::<Payload>(asked);
        let mut queued = VecDeque::new();
        let (mut producer_gone, mut consumer_gone) = (false, false);
        for (step, number) in steps.into_iter().zip(1..) {
            match step {
                Step::Push => {
                    let refused = producer.try_push(alive.payload(number));
                    let has_room = queued.len() < capacity && !consumer_gone;
                    prop_assert_eq!(refused.is_none(), has_room);
                    if has_room {
                        queued.push_back(number);
                    }
                    dropping(|| drop(refused));
                }
                Step::Pop => {
                    let taken = consumer.try_pop();
                    prop_assert_eq!(taken.as_ref().map(|it| it.number), queued.pop_front());
                    dropping(|| drop(taken));
                }
                Step::Look => {
                    prop_assert_eq!(producer.free_space(), capacity - queued.len());
                    prop_assert_eq!(producer.consumer_disconnected(), consumer_gone);
                    prop_assert_eq!(consumer.producer_disconnected(), producer_gone);
                }
                Step::Disconnect(true) => {
                    prop_assert_eq!(producer.disconnect(), producer_gone);
                    producer_gone = true;
                }
                Step::Disconnect(false) => {
                    prop_assert_eq!(consumer.disconnect(), consumer_gone);
                    consumer_gone = true;
                }
            }
            prop_assert_eq!(alive.count(), queued.len() as i64, "each is dropped once");
        }
        dropping(|| drop((producer, consumer)));
        prop_assert_eq!(alive.count(), 0);
    }
}
