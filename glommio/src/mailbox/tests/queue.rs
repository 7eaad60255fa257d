//! The queue by itself: order, closing, and who drops what.

#![allow(unsafe_code)]

use std::sync::{Arc, Barrier, Weak};
use std::thread;

use super::*;
use crate::mailbox::{Notifier, RemoteWakeQueue};

fn queue<W: Linked>() -> (RemoteWakeQueue<W>, Arc<Notifier>) {
    let notifier = Arc::new(Notifier::new().expect("a descriptor is free"));
    (RemoteWakeQueue::new(notifier.clone()), notifier)
}

fn push<T: Send>(queue: &RemoteWakeQueue<Note<T>>, value: T) {
    let pushed = queue.push(Note::new(value));
    assert!(pushed.is_ok(), "the queue is open");
}

fn values(taken: impl Iterator<Item = Note<u32>>) -> Vec<u32> {
    taken.map(|note| note.value()).collect()
}

/// Each wake is dropped once: by the caller that took it, with what was taken, or with the queue.
#[test]
fn wakes_that_are_not_taken_are_dropped() {
    let (queue, _notifier) = queue();
    let values: Vec<_> = (0..6).map(Arc::new).collect();
    let alive = || values.iter().filter(|it| Arc::strong_count(it) > 1).count();
    let push = |range: std::ops::Range<usize>| {
        values[range].iter().for_each(|it| push(&queue, it.clone()));
    };
    push(0..3);
    let mut taken = queue.take();
    drop(taken.next());
    assert_eq!(alive(), 2);
    drop(taken);
    assert_eq!(alive(), 0);
    push(3..6);
    drop(queue);
    assert_eq!(alive(), 0);
}

/// A wake whose thread stands still in the middle of a push: neither the owner nor other threads
/// wait for it.
#[test]
fn a_producer_that_is_descheduled_blocks_no_other_thread() {
    /// Stands still until it is told to go on.
    struct StandsStill {
        note: Note<u32>,
        gate: Option<Arc<(Barrier, Barrier)>>,
    }
    // SAFETY: as for the note.
    unsafe impl Linked for StandsStill {
        fn into_link(self) -> NonNull<Link> {
            if let Some(gate) = self.gate {
                gate.0.wait();
                gate.1.wait();
            }
            self.note.into_link()
        }
        unsafe fn from_link(link: NonNull<Link>) -> Self {
            // SAFETY: as for the note.
            let note = unsafe { Note::from_link(link) };
            StandsStill { note, gate: None }
        }
    }
    let (queue, notifier) = queue();
    let gate = Arc::new((Barrier::new(2), Barrier::new(2)));
    let push = |value, gate| {
        let note = Note::new(value);
        assert!(queue.push(StandsStill { note, gate }).is_ok());
    };
    let taken = || values(queue.take().map(|it| it.note));
    thread::scope(|scope| {
        let (push, gate_of_sender) = (&push, gate.clone());
        scope.spawn(move || push(1, Some(gate_of_sender)));
        gate.0.wait();
        push(2, None);
        assert!(notifier.take());
        assert_eq!(taken(), [2]);
        assert!(!notifier.is_notified());
        gate.1.wait();
    });
    assert!(notifier.take(), "it notifies when it is done");
    assert_eq!(taken(), [1]);
}

/// Wakes that refer to the queue, as tasks do, do not keep it alive when it is closed.
#[test]
fn a_closed_queue_is_not_kept_by_what_it_had_accepted() {
    struct Refers(Note<Option<Arc<RemoteWakeQueue<Refers>>>>);
    // SAFETY: as for the note.
    unsafe impl Linked for Refers {
        fn into_link(self) -> NonNull<Link> {
            self.0.into_link()
        }
        unsafe fn from_link(link: NonNull<Link>) -> Self {
            // SAFETY: as for the note.
            Refers(unsafe { Note::from_link(link) })
        }
    }
    let queue = Arc::new(queue::<Refers>().0);
    let weak: Weak<_> = Arc::downgrade(&queue);
    for _ in 0..3 {
        let note = Refers(Note::new(Some(queue.clone())));
        assert!(queue.push(note).is_ok());
    }
    drop(queue.close());
    drop(queue);
    assert_eq!(weak.strong_count(), 0);
}
