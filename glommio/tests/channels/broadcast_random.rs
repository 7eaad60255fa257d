//! A broadcast under random operations, against a list of all that was ever sent, in both forms.

use glommio::channels::broadcast::{Receiver, RecvError, Sender, TryRecvError, broadcast, shared};
use glommio::channels::storage::Storage;
use proptest::prelude::*;

use crate::common::prelude::*;
use crate::payload::{Alive, Payload, dropping};

type Ends<S> = (Sender<Payload, S>, Receiver<Payload, S>);

struct Listener<S: Storage> {
    receiver: Receiver<Payload, S>,
    /// The number of the value that is to come.
    next: u64,
    waits: Option<(Rc<Cell<bool>>, Waker)>,
}

/// What a receiver at `next` should get.
fn expected(next: u64, sent: u64, capacity: u64, senders: usize) -> Result<u64, TryRecvError> {
    let oldest = sent.saturating_sub(capacity);
    match next {
        _ if next < oldest => Err(TryRecvError::Lagged(oldest - next)),
        _ if next < sent => Ok(next),
        _ if senders == 0 => Err(TryRecvError::Closed),
        _ => Err(TryRecvError::Empty),
    }
}

impl<S: Storage> Listener<S> {
    fn new(receiver: Receiver<Payload, S>, next: u64) -> Self {
        Listener {
            receiver,
            next,
            waits: None,
        }
    }

    fn got(&mut self, got: Result<Payload, TryRecvError>, expected: Result<u64, TryRecvError>) {
        assert_eq!(got.as_ref().map(|it| it.number).map_err(|it| *it), expected);
        match expected {
            Ok(_) => self.next += 1,
            Err(TryRecvError::Lagged(missed)) => self.next += missed,
            Err(TryRecvError::Empty | TryRecvError::Closed) => {}
        }
        dropping(|| drop(got));
    }

    fn poll(&mut self, expected: Result<u64, TryRecvError>, is_loud: bool) {
        let is_woken = Rc::new(Cell::new(false));
        let flag = Rc::clone(&is_woken);
        let waker = on_wake(move || {
            flag.set(true);
            if is_loud {
                quiet_panic();
            }
        });
        let got = match self.receiver.poll_next(&mut Context::from_waker(&waker)) {
            Poll::Pending => {
                self.waits = Some((is_woken, waker));
                Err(TryRecvError::Empty)
            }
            Poll::Ready(got) => {
                self.waits = None;
                got.unwrap_or(Err(RecvError::Closed))
                    .map_err(|error| match error {
                        RecvError::Closed => TryRecvError::Closed,
                        RecvError::Lagged(missed) => TryRecvError::Lagged(missed),
                    })
            }
        };
        self.got(got, expected);
    }
}

fn random<S: Storage>(make: fn(usize) -> Ends<S>, seed: u64, operations: u64) {
    let (alive, mut numbers) = (Alive::default(), Numbers::new(seed));
    let capacity = numbers.below(4) + 1;
    let (sender, receiver) = make(capacity as usize);
    let mut senders = vec![sender];
    let mut listeners = vec![Listener::new(receiver, 0)];
    let mut sent = 0;
    for operation in 0..operations {
        let number = numbers.below(1 << 32);
        let at = (number >> 8) as usize % listeners.len().max(1);
        match number % 16 {
            0..=4 if !senders.is_empty() => {
                let sender = &senders[number as usize % senders.len()];
                let payload = alive.payload(sent);
                // A value that is overwritten may panic; the new one was sent all the same.
                match dropping(|| sender.send(payload).map_err(|it| it.into_inner())) {
                    Some(Err(refused)) => {
                        assert!(listeners.is_empty());
                        dropping(|| drop(refused));
                    }
                    count => {
                        assert!(!listeners.is_empty());
                        if let Some(count) = count {
                            assert_eq!(count.ok(), Some(listeners.len()));
                        }
                        sent += 1;
                    }
                }
            }
            5..=9 if !listeners.is_empty() => {
                let next = listeners[at].next;
                let expected = expected(next, sent, capacity, senders.len());
                listeners[at].poll(expected, number.is_multiple_of(3));
            }
            10 if !listeners.is_empty() => {
                let listener = &mut listeners[at];
                let expected = expected(listener.next, sent, capacity, senders.len());
                let got = listener.receiver.try_recv();
                listener.got(got, expected);
            }
            11 if !listeners.is_empty() => {
                // Waits and gives up.
                let listener = &mut listeners[at];
                let mut recv = Polled::new(listener.receiver.recv());
                if let Poll::Ready(got) = recv.poll() {
                    let got = got.map_err(|error| match error {
                        RecvError::Closed => TryRecvError::Closed,
                        RecvError::Lagged(missed) => TryRecvError::Lagged(missed),
                    });
                    drop(recv);
                    let expected = expected(listener.next, sent, capacity, senders.len());
                    listener.got(got, expected);
                }
                listener.waits = None;
            }
            12 if listeners.len() < 6 => {
                let new = match (listeners.get(at), senders.first()) {
                    (Some(other), _) if number.is_multiple_of(3) => {
                        Some(Listener::new(other.receiver.clone(), other.next))
                    }
                    (_, Some(sender)) => Some(Listener::new(sender.subscribe(), sent)),
                    _ => None,
                };
                listeners.extend(new);
            }
            13 if listeners.len() > usize::from(!number.is_multiple_of(64)) => {
                let listener = listeners.swap_remove(at);
                dropping(|| drop(listener));
            }
            14 if senders.len() < 3 && !senders.is_empty() => senders.push(senders[0].clone()),
            15 if senders.len() > 1 || operation + 20 > operations => drop(senders.pop()),
            _ => {}
        }
        for listener in &listeners {
            let has_news =
                expected(listener.next, sent, capacity, senders.len()) != Err(TryRecvError::Empty);
            if let Some((is_woken, _)) = &listener.waits {
                assert!(is_woken.get() || !has_news, "a wake-up was lost");
            }
        }
        // Those that one is to see yet, and no others.
        let slowest = listeners.iter().map(|it| it.next).min().unwrap_or(sent);
        let kept = (sent - slowest).min(capacity);
        assert_eq!(alive.count(), kept as i64);
    }
    dropping(|| drop(listeners));
    assert_eq!(alive.count(), 0);
}

proptest! {
    #[test]
    fn agrees_with_a_plain_list(seed in any::<u64>(), operations in 0..200u64) {
        random(broadcast, seed, operations);
        random(shared, seed, operations);
    }
}

#[test]
fn no_wake_up_is_lost_in_a_long_run() {
    let _watchdog = (operations() <= 1_000_000).then(watchdog);
    for seed in 0..10 {
        random(broadcast, seed, operations() / 20);
        random(shared, seed, operations() / 20);
    }
}
