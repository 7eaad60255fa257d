//! The sleep protocol under every interleaving: no wake is lost, one signal ends one sleep.
//!
//! A lost wake leaves the owner asleep forever, which loom reports as a deadlock. The work is a
//! relaxed counter, so that nothing but the notifier's word orders it.

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use crate::mailbox::Notifier;
use crate::mailbox::sleep::Signal;

/// An eventfd: stays raised until it is cleared.
pub(super) struct MockSignal {
    state: Mutex<SignalState>,
    raised: Condvar,
}

#[derive(Default)]
struct SignalState {
    is_raised: bool,
    count: usize,
}

impl MockSignal {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::default(),
            raised: Condvar::new(),
        }
    }

    /// Sleeps until the signal is raised.
    pub(super) fn wait(&self) {
        let mut state = self.state.lock().expect("no thread panics");
        while !state.is_raised {
            state = self.raised.wait(state).expect("no thread panics");
        }
    }
}

impl Signal for MockSignal {
    fn raise(&self) {
        let mut state = self.state.lock().expect("no thread panics");
        state.is_raised = true;
        state.count += 1;
        self.raised.notify_one();
    }

    fn clear(&self) {
        self.state.lock().expect("no thread panics").is_raised = false;
    }
}

struct Shared {
    work: AtomicUsize,
    notifier: Notifier<MockSignal>,
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            work: AtomicUsize::new(0),
            notifier: Notifier::with_signal(MockSignal::new()),
        })
    }

    fn produce(&self) {
        self.work.fetch_add(1, Ordering::Relaxed);
        self.notifier.notify();
    }

    /// The owner: takes `expected` units of work, and sleeps where it finds none. The first `naps`
    /// sleeps end by themselves, as by a timeout.
    fn consume(&self, expected: usize, mut naps: usize) {
        let mut sleeps = 0;
        loop {
            // A load, which may be as stale as the notifier's word allows.
            if self.notifier.take() && self.work.load(Ordering::Relaxed) == expected {
                break;
            }
            if self.notifier.announce_sleep() {
                sleeps += 1;
                if naps > 0 {
                    naps -= 1;
                } else {
                    self.notifier.signal().wait();
                }
                self.notifier.awake();
                self.notifier.clear_signal();
            }
        }
        let state = self.notifier.signal().state.lock().expect("no panic");
        assert!(state.count <= sleeps, "one signal per sleep");
    }
}

#[run_test(loom::model)]
fn loom_two_producers_one_owner() {
    let shared = Shared::new();
    for _ in 0..2 {
        let shared = shared.clone();
        thread::spawn(move || shared.produce());
    }
    shared.consume(2, 0);
}

#[run_test(loom::model)]
fn loom_one_producer_twice() {
    let shared = Shared::new();
    let producer = shared.clone();
    thread::spawn(move || {
        producer.produce();
        producer.produce();
    });
    shared.consume(2, 0);
}

/// The signal of a sleep that ended by itself comes late, into the next one.
#[run_test(loom::model)]
fn loom_sleep_ends_by_itself() {
    let shared = Shared::new();
    let producer = shared.clone();
    thread::spawn(move || {
        producer.produce();
        producer.produce();
    });
    shared.consume(2, 1);
}
