//! Pushing against taking, closing and sleeping under every interleaving: what was accepted is
//! taken once, the rest comes back, and no owner sleeps beside a wake.
//!
//! Each wake carries a cell, so that loom reports an owner that reads it, or a link, without being
//! ordered after the push.

#![allow(unsafe_code)]

use std::sync::Arc;

use loom::thread;

use super::Note;
use super::loom_sleep::MockSignal;
use crate::mailbox::{Notifier, RemoteWakeQueue, Taken};

type Queue = RemoteWakeQueue<Note<usize>, MockSignal>;

fn queue() -> (Arc<Queue>, Arc<Notifier<MockSignal>>) {
    let notifier = Arc::new(Notifier::with_signal(MockSignal::new()));
    (Arc::new(Queue::new(notifier.clone())), notifier)
}

fn push(queue: &Queue, value: usize) -> bool {
    let note = Note::new(0);
    // SAFETY: nothing else has the note.
    note.0.value.with_mut(|place| unsafe { *place = value });
    queue.push(note).is_ok()
}

fn values(taken: Taken<Note<usize>>) -> Vec<usize> {
    taken.map(|note| note.value()).collect()
}

/// Pushes `values` on another thread, and says how many of them were accepted.
fn push_elsewhere<const N: usize>(
    queue: &Arc<Queue>,
    values: [usize; N],
) -> thread::JoinHandle<usize> {
    let queue = queue.clone();
    thread::spawn(move || values.into_iter().filter(|&it| push(&queue, it)).count())
}

/// Few wakes, since loom remembers the last seven values of an atomic and fails where a thread may
/// read an older one.
#[run_test(bounded)]
fn loom_push_against_take() {
    let (queue, _) = queue();
    let threads = [
        push_elsewhere(&queue, [11, 12]),
        push_elsewhere(&queue, [21]),
    ];
    // Of a look at an empty queue loom does not see that it depends on the pushes.
    assert!(push(&queue, 31));
    let mut taken = values(queue.take());
    let accepted = threads.map(|thread| thread.join().expect("it ends well"));
    assert_eq!(accepted, [2, 1]);
    taken.extend(values(queue.take()));
    assert!(
        taken.iter().filter(|&it| it / 10 == 1).is_sorted(),
        "{taken:?}"
    );
    taken.sort_unstable();
    assert_eq!(taken, [11, 12, 21, 31]);
}

#[run_test(bounded)]
fn loom_close_against_push() {
    let (queue, _) = queue();
    let threads = [
        push_elsewhere(&queue, [11, 12]),
        push_elsewhere(&queue, [21]),
    ];
    let mut taken = values(queue.take());
    taken.extend(values(queue.close()));
    let accepted: usize = threads
        .into_iter()
        .map(|thread| thread.join().expect("it ends well"))
        .sum();
    assert_eq!(accepted, taken.len(), "the close has got all");
    assert!(
        taken.iter().filter(|&it| it / 10 == 1).is_sorted(),
        "{taken:?}"
    );
    assert!(values(queue.take()).is_empty());
    assert!(!push(&queue, 31), "closed stays closed");
}

/// The same wake is pushed, taken and pushed again, while another thread is about to link to it.
#[run_test(bounded)]
fn loom_pushed_again_under_a_push() {
    let (queue, _) = queue();
    assert!(push(&queue, 1));
    let thread = push_elsewhere(&queue, [2]);
    let mut taken = Vec::new();
    for note in queue.take() {
        taken.push(note.value());
        assert!(queue.push(note).is_ok());
    }
    taken.extend(values(queue.take()));
    assert_eq!(thread.join().expect("it ends well"), 1);
    taken.extend(values(queue.take()));
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken, [1, 2]);
}

/// An owner that takes the notification finds the wake behind it.
#[run_test(bounded)]
fn loom_notified_wakes_are_there() {
    let (queue, notifier) = queue();
    let thread = push_elsewhere(&queue, [1]);
    let was_notified = notifier.take();
    let taken = values(queue.take());
    assert!(!taken.is_empty() || !was_notified);
    assert_eq!(thread.join().expect("it ends well"), 1);
    if taken.is_empty() {
        assert!(notifier.take(), "and not before");
        assert_eq!(values(queue.take()), [1]);
    }
}

/// An owner that sleeps where it finds nothing. A lost wake is a deadlock.
#[run_test(bounded)]
fn loom_no_owner_sleeps_beside_a_wake() {
    let (queue, notifier) = queue();
    let threads = [push_elsewhere(&queue, [1]), push_elsewhere(&queue, [2])];
    let mut taken = Vec::new();
    while taken.len() < 2 {
        if notifier.take() {
            taken.extend(values(queue.take()));
        } else if notifier.announce_sleep() {
            notifier.signal().wait();
            notifier.awake();
            notifier.clear_signal();
        }
    }
    for thread in threads {
        assert_eq!(thread.join().expect("it ends well"), 1);
    }
    assert!(values(queue.take()).is_empty());
}

/// Three preemptions per run find what so few threads can do to the queue.
fn bounded(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}
