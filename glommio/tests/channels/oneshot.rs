use glommio::channels::oneshot::{Receiver, Sender, oneshot, shared};
use glommio::channels::storage::Storage;
use proptest::prelude::*;

use crate::common::prelude::*;
use crate::payload::{Alive, Bomb, dropping};

type Ends<S, T = u32> = (Sender<T, S>, Receiver<T, S>);

#[test]
fn wakers_may_use_the_channel_and_panic() {
    fn check<S: Storage + 'static>(make: fn() -> Ends<S>) {
        let (sender, receiver) = make();
        let (other, other_receiver) = make();
        let mut waiting = Polled::hooked(receiver, move || {
            assert!(!other.is_closed());
            quiet_panic();
        });
        assert!(waiting.poll().is_pending());
        sender.send(7).unwrap();
        assert_eq!(waiting.finish().unwrap(), 7);
        drop((waiting, other_receiver));
    }
    check(oneshot);
    check(shared);
}

#[test]
fn it_prints_without_a_bound_on_the_value() {
    struct Plain;
    let (sender, receiver) = shared();
    let text = format!("{sender:?} {receiver:?}");
    assert!(
        text.contains("is_closed: false") && text.contains("empty"),
        "{text}"
    );
    assert!(sender.send(Plain).is_ok());
}

/// All orders of sending, polling and dropping: a value arrives, comes back or is dropped, and is
/// one of these.
fn steps<S: Storage>(
    (sender, receiver): Ends<S, crate::payload::Payload>,
    steps: &[u8],
    alive: &Alive,
) {
    let (mut sender, mut receiver) = (Some(sender), Some(Polled::new(receiver)));
    let (mut is_sent, mut is_waiting) = (false, false);
    for step in steps {
        match step {
            0 => {
                let Some(sender) = sender.take() else {
                    continue;
                };
                assert_eq!(sender.is_closed(), receiver.is_none());
                let sent = sender.send(alive.payload(5));
                assert_eq!(sent.is_ok(), receiver.is_some());
                is_sent = sent.is_ok();
                dropping(|| drop(sent));
            }
            1 => drop(sender.take()),
            2 => drop(dropping(|| drop(receiver.take()))),
            _ => {
                let Some(it) = &mut receiver else { continue };
                let is_done = sender.is_none();
                assert!(
                    !is_waiting || it.is_woken() == is_done,
                    "a wake-up was lost"
                );
                if *step == 3 {
                    it.change_waker();
                }
                match it.poll() {
                    Poll::Pending => {
                        assert!(!is_done);
                        is_waiting = true;
                    }
                    Poll::Ready(got) => {
                        assert!(is_done);
                        assert_eq!(got.is_ok(), is_sent);
                        is_sent = false;
                        is_waiting = false;
                        dropping(|| drop(got));
                    }
                }
            }
        }
        let stored = i64::from(is_sent && receiver.is_some());
        assert_eq!(alive.count(), stored);
    }
    drop(sender);
    dropping(|| drop(receiver));
    assert_eq!(alive.count(), 0);
}

proptest! {
    #[test]
    fn each_value_ends_in_one_place(sequence in prop::collection::vec(0..5u8, 0..12)) {
        let alive = Alive::default();
        steps(oneshot(), &sequence, &alive);
        steps(shared(), &sequence, &alive);
    }
}

/// Where another panic unwinds a second one would abort the process.
#[test]
fn a_value_whose_destructor_panics_can_be_dropped_by_a_panic() {
    let dropped = Rc::new(Cell::new(0));
    let unwound = dropping(|| {
        let (sender, _receiver) = oneshot();
        assert!(sender.send(Bomb(Rc::clone(&dropped))).is_ok());
        quiet_panic();
    });
    assert!(unwound.is_none());
    assert_eq!(dropped.get(), 1);
}
