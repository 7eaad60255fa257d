use glommio::channels::storage::Storage;
use glommio::channels::watch::{Receiver, Sender, SharedReceiver, shared, watch};

use crate::common::prelude::*;

type Ends<S, T = u32> = (Sender<T, S>, Receiver<T, S>);

#[test]
fn only_sending_is_impossible_while_the_value_is_lent() {
    let (sender, mut receiver) = watch(String::from("first"));
    let lent = sender.borrow();
    let mut clone = receiver.clone();
    let mut changed = Polled::waiting(receiver.changed());
    drop(clone.clone());
    assert!(!sender.is_closed());
    assert_eq!(clone.get(), *lent);
    let message = panic_of(|| sender.send(String::from("second")));
    assert!(message.contains("while it is lent"), "{message}");
    drop(lent);
    assert!(
        Polled::new(clone.changed()).poll().is_pending(),
        "nothing was sent"
    );
    sender.send(String::from("third")).unwrap();
    changed.finish().unwrap();
    drop(changed);
    assert_eq!(*receiver.borrow(), "third");
}

/// It may use the channel, also the shared one.
#[test]
fn the_old_value_is_dropped_with_nothing_borrowed() {
    type Value = Option<Box<dyn std::any::Any>>;
    let (sender, receiver) = watch::<Value>(None);
    let (sender, seen) = (Rc::new(sender), Rc::new(Cell::new(false)));
    let guard = on_drop({
        let (sender, seen) = (Rc::downgrade(&sender), Rc::clone(&seen));
        move || {
            let sender = sender.upgrade().expect("it is there");
            assert!(sender.with_current(Option::is_none));
            sender.send(None).unwrap();
            seen.set(true);
        }
    });
    sender.send(Some(Box::new(guard))).unwrap();
    sender.send(None).unwrap();
    assert!(seen.get());
    drop(receiver);

    type Slot = Arc<std::sync::Mutex<Option<SharedReceiver<Option<Probe>>>>>;
    struct Probe(Slot);
    impl Drop for Probe {
        fn drop(&mut self) {
            let receiver = self.0.lock().unwrap().take();
            receiver
                .unwrap()
                .with_current(|value| assert!(value.is_none()));
        }
    }
    let (sender, receiver) = shared(None);
    let slot = Arc::new(std::sync::Mutex::new(Some(receiver.clone())));
    assert!(sender.send(Some(Probe(Arc::clone(&slot)))).is_ok());
    assert!(sender.send(None).is_ok());
    assert!(slot.lock().unwrap().is_none());
}

#[test]
fn wakers_may_use_the_channel_and_panic() {
    fn check<S: Storage + 'static>((sender, receiver): Ends<S>) {
        let sender = Rc::new(sender);
        let mut waiting: Vec<_> = (0..3)
            .map(|which| {
                let (mut inner, outer, sender) =
                    (receiver.clone(), receiver.clone(), Rc::downgrade(&sender));
                let changed = async move { inner.changed().await };
                let mut changed = Polled::hooked(changed, move || {
                    assert_eq!(outer.clone().get(), 1);
                    assert!(!sender.upgrade().unwrap().is_closed());
                    if which == 0 {
                        quiet_panic();
                    }
                });
                assert!(changed.poll().is_pending());
                changed
            })
            .collect();
        sender.send(1).unwrap();
        waiting.iter_mut().for_each(|it| it.finish().unwrap());
    }
    check(watch(0));
    check(shared(0));
}

#[test]
fn it_prints_no_values() {
    let (sender, mut receiver) = shared("a secret");
    let text = format!("{sender:?} {receiver:?}");
    assert!(
        text.contains("receivers: 1") && !text.contains("secret"),
        "{text}"
    );
    assert!(format!("{:?}", receiver.changed()).contains("Changed"));
}
