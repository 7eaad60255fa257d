//! A watched value under random operations, against versions that are counted by hand, in both
//! forms.

use glommio::channels::storage::Storage;
use glommio::channels::watch::{Receiver, Sender, shared, watch};
use proptest::prelude::*;

use crate::common::prelude::*;
use crate::payload::{Alive, Payload, dropping};

type Ends<S> = (Sender<Payload, S>, Receiver<Payload, S>);

/// A receiver and whether it waits, as a stream, for what comes after `seen`.
struct Watcher<S: Storage> {
    receiver: Receiver<Payload, S>,
    seen: u64,
    /// Wakes of the stream that it is polled as.
    is_woken: Option<(Rc<Cell<bool>>, Waker)>,
}

impl<S: Storage> Watcher<S> {
    fn new(receiver: Receiver<Payload, S>, seen: u64) -> Self {
        Watcher {
            receiver,
            seen,
            is_woken: None,
        }
    }

    /// Polls it as a stream.
    fn poll(&mut self, version: u64, is_ended: bool, is_loud: bool) {
        let is_woken = Rc::new(Cell::new(false));
        let flag = Rc::clone(&is_woken);
        let waker = on_wake(move || {
            flag.set(true);
            if is_loud {
                quiet_panic();
            }
        });
        let mut cx = Context::from_waker(&waker);
        match self.receiver.poll_next(&mut cx) {
            Poll::Pending => {
                assert!(self.seen == version && !is_ended);
                self.is_woken = Some((is_woken, waker));
            }
            Poll::Ready(None) => assert!(self.seen == version && is_ended),
            Poll::Ready(Some(value)) => {
                assert!(self.seen < version);
                assert_eq!(value.number, version, "the latest");
                self.seen = version;
                self.is_woken = None;
                dropping(|| drop(value));
            }
        }
    }

    /// Waits for a change, and gives up.
    fn change(&mut self, version: u64, is_ended: bool) {
        let mut changed = Polled::new(self.receiver.changed());
        match changed.poll() {
            Poll::Pending => assert!(self.seen == version && !is_ended),
            Poll::Ready(Err(_)) => assert!(self.seen == version && is_ended),
            Poll::Ready(Ok(())) => assert!(self.seen < version),
        }
        drop(changed);
        self.seen = version;
        self.is_woken = None;
    }
}

fn random<S: Storage>(make: fn(Payload) -> Ends<S>, seed: u64, operations: u64) {
    let (alive, mut numbers) = (Alive::default(), Numbers::new(seed));
    let (sender, receiver) = make(alive.payload(0));
    let mut sender = Some(sender);
    let mut watchers = vec![Watcher::new(receiver, 0)];
    let mut version = 0;
    for operation in 0..operations {
        let number = numbers.below(1 << 32);
        let at = (number >> 8) as usize % watchers.len().max(1);
        let is_ended = sender.is_none();
        match number % 16 {
            0..=3 => {
                if let Some(sender) = &sender {
                    // The old value is dropped in there, and may panic: it was sent all the same.
                    let payload = alive.payload(version + 1);
                    let sent = dropping(|| sender.send(payload).map_err(|it| it.into_inner()));
                    match sent {
                        Some(Err(refused)) => {
                            assert!(watchers.is_empty());
                            dropping(|| drop(refused));
                        }
                        _ => {
                            assert!(!watchers.is_empty());
                            version += 1;
                        }
                    }
                }
            }
            4..=9 if !watchers.is_empty() => {
                watchers[at].poll(version, is_ended, number.is_multiple_of(3));
            }
            10 if !watchers.is_empty() => watchers[at].change(version, is_ended),
            11 if (1..6).contains(&watchers.len()) => {
                let clone = watchers[at].receiver.clone();
                watchers.push(Watcher::new(clone, watchers[at].seen));
            }
            12 if watchers.len() > usize::from(!number.is_multiple_of(64)) => {
                drop(watchers.swap_remove(at));
            }
            13 if operation + 20 > operations => {
                dropping(|| drop(sender.take()));
            }
            _ => {}
        }
        if let Some(sender) = &sender {
            assert_eq!(sender.is_closed(), watchers.is_empty());
            sender.with_current(|it| assert_eq!(it.number, version));
        }
        for watcher in &watchers {
            let has_news = watcher.seen < version || sender.is_none();
            if let Some((is_woken, _)) = &watcher.is_woken {
                assert_eq!(is_woken.get(), has_news, "a wake-up was lost, or too many");
            }
        }
        let expected = i64::from(sender.is_some() || !watchers.is_empty());
        assert_eq!(alive.count(), expected, "one value");
    }
    dropping(|| drop(sender));
    dropping(|| drop(watchers));
    assert_eq!(alive.count(), 0);
}

proptest! {
    #[test]
    fn agrees_with_counted_versions(seed in any::<u64>(), operations in 0..200u64) {
        random(watch, seed, operations);
        random(shared, seed, operations);
    }
}

#[test]
fn no_wake_up_is_lost_in_a_long_run() {
    let _watchdog = (operations() <= 1_000_000).then(watchdog);
    for seed in 0..10 {
        random(watch, seed, operations() / 20);
        random(shared, seed, operations() / 20);
    }
}
