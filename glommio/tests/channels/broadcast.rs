use glommio::channels::broadcast::{Receiver, RecvError, Sender, TryRecvError, broadcast, shared};
use glommio::channels::storage::Storage;

use crate::common::prelude::*;
use crate::payload::{Bomb, dropping};

type Ends<S, T = u32> = (Sender<T, S>, Receiver<T, S>);

#[test]
fn a_capacity_of_0_panics() {
    assert!(panic_of(|| broadcast::<u8>(0)).contains("capacity 0"));
    assert!(panic_of(|| shared::<u8>(0)).contains("capacity 0"));
}

#[test]
fn an_absurd_capacity_takes_no_memory() {
    let (sender, mut receiver) = broadcast(usize::MAX);
    sender.send(1).unwrap();
    assert_eq!(receiver.try_recv(), Ok(1));
}

/// What is missed is neither searched nor cloned.
#[test]
fn lagging_costs_no_clones() {
    static CLONES: AtomicUsize = AtomicUsize::new(0);
    struct Counted;
    impl Clone for Counted {
        fn clone(&self) -> Self {
            CLONES.fetch_add(1, Ordering::Relaxed);
            Counted
        }
    }
    fn check<S: Storage>((sender, mut receiver): Ends<S, Counted>, clones: usize) {
        let before = CLONES.load(Ordering::Relaxed);
        for _ in 0..10_000 {
            assert!(sender.send(Counted).is_ok());
        }
        assert!(matches!(
            receiver.try_recv(),
            Err(TryRecvError::Lagged(9_990))
        ));
        assert_eq!(CLONES.load(Ordering::Relaxed), before);
        assert!(receiver.try_recv().is_ok());
        assert_eq!(CLONES.load(Ordering::Relaxed), before + clones);
    }
    check(broadcast(10), 1);
    check(shared(10), 1);
}

#[test]
fn clones_and_destructors_may_use_a_local_channel() {
    #[derive(Default)]
    struct Nosy(Rc<Cell<Option<&'static Sender<Nosy>>>>);
    impl Nosy {
        fn look(&self) {
            if let Some(sender) = self.0.get() {
                drop(sender.subscribe());
                assert!(sender.receiver_count() <= 1);
            }
        }
    }
    impl Clone for Nosy {
        fn clone(&self) -> Self {
            self.look();
            Nosy(Rc::clone(&self.0))
        }
    }
    impl Drop for Nosy {
        fn drop(&mut self) {
            self.look();
        }
    }
    let (sender, mut receiver) = broadcast(1);
    let sender: &'static Sender<Nosy> = Box::leak(Box::new(sender));
    let nosy = || Nosy(Rc::new(Cell::new(Some(sender))));
    sender.send(nosy()).ok().unwrap();
    drop(receiver.try_recv());
    sender.send(nosy()).ok().unwrap();
    drop(receiver);
}

/// The value is there to be received again.
#[test]
fn a_clone_that_panics_loses_nothing() {
    struct Once(Arc<AtomicUsize>);
    impl Clone for Once {
        fn clone(&self) -> Self {
            if self.0.fetch_add(1, Ordering::Relaxed) == 0 {
                quiet_panic();
            }
            Once(Arc::clone(&self.0))
        }
    }
    fn check<S: Storage>((sender, mut receiver): Ends<S, Once>) {
        assert!(sender.send(Once(Arc::default())).is_ok());
        let mut other = receiver.clone();
        panic_of(|| receiver.try_recv());
        assert!(receiver.try_recv().is_ok());
        assert!(other.try_recv().is_ok());
    }
    check(broadcast(1));
    check(shared(1));
}

#[test]
fn wakers_may_use_the_channel_and_panic() {
    fn check<S: Storage + 'static>((sender, receiver): Ends<S>) {
        let sender = Rc::new(sender);
        let mut waiting: Vec<_> = (0..3)
            .map(|which| {
                let (mut inner, sender) = (receiver.clone(), Rc::downgrade(&sender));
                let recv = async move { inner.recv().await };
                let mut recv = Polled::hooked(recv, move || {
                    let sender = sender.upgrade().unwrap();
                    assert_eq!(sender.receiver_count(), 4);
                    if which == 0 && sender.clone().send(2).is_ok() {
                        quiet_panic();
                    }
                });
                assert!(recv.poll().is_pending());
                recv
            })
            .collect();
        sender.send(1).unwrap();
        for waiting in &mut waiting {
            assert_eq!(waiting.finish(), Ok(1));
        }
    }
    check(broadcast(4));
    check(shared(4));
}

#[test]
fn errors_say_what_happened() {
    assert_eq!(
        RecvError::Lagged(3).to_string(),
        "3 values were overwritten unread"
    );
    assert_eq!(RecvError::Closed.to_string(), "Channel is closed");
    assert_eq!(TryRecvError::Empty.to_string(), "Channel is empty");
    assert_eq!(
        TryRecvError::Closed.to_string(),
        RecvError::Closed.to_string()
    );
    let lagged = TryRecvError::Lagged(3).to_string();
    assert_eq!(lagged, RecvError::Lagged(3).to_string());
    let _: [&dyn std::error::Error; 2] = [&RecvError::Closed, &TryRecvError::Empty];
}

#[test]
fn it_prints_no_values() {
    let (sender, mut receiver) = shared(1);
    sender.send("a secret").unwrap();
    let text = format!("{sender:?} {receiver:?}");
    assert!(
        text.contains("len: 1") && !text.contains("secret"),
        "{text}"
    );
    assert!(format!("{:?}", receiver.recv()).contains("Recv"));
}

/// Two of them in a row would abort the process.
#[test]
fn values_whose_destructors_panic_are_all_dropped_with_the_last_receiver() {
    let dropped = Rc::new(Cell::new(0));
    let (sender, receiver) = broadcast(4);
    for _ in 0..3 {
        assert!(sender.send(Bomb(Rc::clone(&dropped))).is_ok());
    }
    assert!(dropping(|| drop(receiver)).is_none());
    assert_eq!(dropped.get(), 3);
}
