//! Real threads, a real descriptor, real sleep.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::Note;
use crate::mailbox::sleep::Signal;
use crate::mailbox::{Notifier, RemoteWakeQueue};

/// An eventfd that the test can sleep on.
#[derive(Clone)]
struct SharedEventFd(Arc<EventFd>);

impl Signal for SharedEventFd {
    fn raise(&self) {
        self.0.write(1).expect("the count is far from its end");
    }

    fn clear(&self) {
        // Nothing may have been raised.
        let _ = self.0.read();
    }
}

/// An owner: its notifier, and what it sleeps on.
struct Sleeper {
    notifier: Arc<Notifier<SharedEventFd>>,
    signal: SharedEventFd,
}

impl Sleeper {
    fn new() -> Self {
        let signal = EventFd::from_flags(EfdFlags::EFD_NONBLOCK).expect("a descriptor is free");
        let signal = SharedEventFd(Arc::new(signal));
        Self {
            notifier: Arc::new(Notifier::with_signal(signal.clone())),
            signal,
        }
    }

    /// Sleeps as an executor does, until it is signalled. A lost wake hangs the test.
    fn park(&self) {
        if self.notifier.announce_sleep() {
            let mut fds = [PollFd::new(self.signal.0.as_fd(), PollFlags::POLLIN)];
            poll(&mut fds, PollTimeout::NONE).expect("no signal handler interrupts a test");
            self.notifier.awake();
            self.notifier.clear_signal();
        }
    }
}

/// Every wake of every thread arrives, in its thread's order, though the owner sleeps whenever it
/// finds nothing.
#[test]
fn no_wake_is_lost() {
    const SENDERS: usize = 3;
    const WAKES: usize = 20_000;
    let sleeper = Sleeper::new();
    let queue = RemoteWakeQueue::new(sleeper.notifier.clone());
    let mut next = [0; SENDERS];
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            let queue = &queue;
            scope.spawn(move || {
                for wake in 0..WAKES {
                    assert!(queue.push(Note::new((sender, wake))).is_ok());
                }
            });
        }
        while next.iter().sum::<usize>() < SENDERS * WAKES {
            if sleeper.notifier.take() {
                for note in queue.take() {
                    let (sender, wake) = note.value();
                    assert_eq!(wake, next[sender]);
                    next[sender] += 1;
                }
            } else {
                sleeper.park();
            }
        }
    });
    assert!(queue.take().next().is_none());
}

/// There and back between two sleepers, where a lost wake shows at once.
#[test]
fn ping_pong() {
    const ROUNDS: usize = 5_000;
    let ends = [(); 2].map(|()| {
        let sleeper = Sleeper::new();
        (RemoteWakeQueue::new(sleeper.notifier.clone()), sleeper)
    });
    let send = |end: usize, round| {
        let pushed = ends[end].0.push(Note::new(round));
        assert!(pushed.is_ok(), "the queue is open");
    };
    let receive = |end: usize| {
        let (queue, sleeper) = &ends[end];
        loop {
            if sleeper.notifier.take()
                && let Some(note) = queue.take().next()
            {
                return note.value();
            }
            sleeper.park();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..ROUNDS {
                assert_eq!(receive(1), round);
                send(0, round);
            }
        });
        for round in 0..ROUNDS {
            send(1, round);
            assert_eq!(receive(0), round);
        }
    });
}
