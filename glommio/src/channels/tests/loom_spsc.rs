use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::thread;

use crate::channels::spsc_queue::{make, make_ends};

/// More values than slots: each slot is filled again while the consumer is at it.
#[run_test(loom::model)]
fn loom_spsc_hands_over_in_order() {
    let (producer, consumer) = make(2);
    let thread = thread::spawn(move || (0..3).all(|number| producer.try_push(number).is_none()));
    let mut taken = Vec::new();
    for _ in 0..3 {
        taken.extend(consumer.try_pop());
    }
    let all_fit = thread.join().expect("it ends well");
    taken.extend(std::iter::from_fn(|| consumer.try_pop()));
    assert_eq!(taken, (0..taken.len()).collect::<Vec<_>>());
    assert_eq!(taken.len() == 3, all_fit);
}

/// A consumer that sees the end finds everything that was stored before.
#[run_test(loom::model)]
fn loom_spsc_shows_all_before_the_end() {
    let (producer, consumer) = make(2);
    let thread = thread::spawn(move || {
        producer.try_push(1);
        producer.try_push(2);
        producer.disconnect();
    });
    if consumer.producer_disconnected() {
        assert_eq!((consumer.try_pop(), consumer.try_pop()), (Some(1), Some(2)));
    }
    thread.join().expect("it ends well");
}

struct Value(Arc<AtomicUsize>);

impl Drop for Value {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The halves go in any order, with values in between.
#[run_test(loom::model)]
fn loom_spsc_drops_each_value_once() {
    let drops = Arc::new(AtomicUsize::new(0));
    let (producer, consumer) = make(2);
    let values = [(); 2].map(|()| Value(Arc::clone(&drops)));
    let thread = thread::spawn(move || {
        for value in values {
            drop(producer.try_push(value));
        }
    });
    drop(consumer.try_pop());
    consumer.disconnect();
    drop(consumer);
    thread.join().expect("it ends well");
    assert_eq!(drops.load(Ordering::Relaxed), 2);
}

/// A producer that sees that the consumer has gone sees all that its thread did before.
#[run_test(loom::model)]
fn loom_spsc_shows_what_was_before_the_consumer_went() {
    let (producer, consumer) = make::<u8>(1);
    let done = Arc::new(loom::sync::atomic::AtomicBool::new(false));
    let was_done = Arc::clone(&done);
    let thread = thread::spawn(move || {
        was_done.store(true, Ordering::Relaxed);
        consumer.disconnect();
    });
    if producer.consumer_disconnected() {
        assert!(done.load(Ordering::Relaxed));
    }
    thread.join().expect("it ends well");
}

/// Whichever side has the role of the consumer at the end drops what came late, once, with nothing but the role to order it.
#[run_test(loom::model)]
fn loom_spsc_drops_what_is_late_in_either_role() {
    let drops = Arc::new(AtomicUsize::new(0));
    let (producer, consumer) = make_ends(2, || ());
    let values = [(); 2].map(|()| Value(Arc::clone(&drops)));
    let thread = thread::spawn(move || {
        consumer.disconnect();
        consumer.retire(|| ());
        consumer
    });
    for value in values {
        drop(producer.try_push(value));
    }
    let is_told = producer.consumer_disconnected();
    if is_told {
        producer.drop_late();
    }
    let consumer = thread.join().expect("it ends well");
    assert!(!is_told || drops.load(Ordering::Relaxed) == 2);
    drop((producer, consumer));
    assert_eq!(drops.load(Ordering::Relaxed), 2);
}
