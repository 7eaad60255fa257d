//! Shared channels between executors on threads of their own: items arrive, sleepers are woken, and
//! no end of one thread leaves the other waiting.

use glommio::channels::shared_channel::{
    ConnectedReceiver, ConnectedSender, SharedReceiver, SharedSender, new_bounded,
};

use crate::common::prelude::*;
use crate::payload::{Alive, Payload};

/// Both sleep in the kernel whenever it is the other's turn.
#[test]
fn items_go_there_and_back() {
    let _watchdog = (operations() <= 1_000_000).then(watchdog);
    let (there, here) = (new_bounded(1), new_bounded(1));
    let trips = operations() / 50;
    let echo = spawn_executor(move || async move {
        let (receiver, sender) = zip(there.1.connect(), here.0.connect()).await;
        while let Some(number) = receiver.recv().await {
            sender.send(number).await.unwrap();
        }
    });
    run(async move {
        let (sender, receiver) = zip(there.0.connect(), here.1.connect()).await;
        for number in 0..trips {
            sender.send(number).await.unwrap();
            assert_eq!(receiver.recv().await, Some(number));
        }
    });
    echo.join().unwrap();
}

#[run_test]
fn a_sleeping_sender_is_woken_for_less_than_half_of_the_capacity() {
    let sent = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = new_bounded(64);
    let producer = spawn_executor({
        let sent = sent.clone();
        move || async move {
            let sender = sender.connect().await;
            for number in 0..66 {
                sender.send(number).await.unwrap();
                sent.fetch_add(1, Ordering::Release);
            }
        }
    });
    run(async {
        let receiver = receiver.connect().await;
        for number in 0..2 {
            while sent.load(Ordering::Acquire) < 64 + number {
                executor().yield_now().await;
            }
            // So that it sleeps.
            sleep(Duration::from_millis(20)).await;
            assert_eq!(receiver.recv().await, Some(number));
        }
        // The task is never without work.
        while sent.load(Ordering::Acquire) < 66 {
            executor().yield_now().await;
        }
    });
    producer.join().unwrap();
}

#[test]
fn a_connect_that_sleeps_is_woken_by_the_other_end_and_by_its_drop() {
    for is_dropped in [false, true] {
        let (sender, receiver) = new_bounded::<u8>(1);
        let other = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            if is_dropped {
                drop(sender)
            } else {
                LocalExecutor::default().run(async { drop(sender.connect().await) })
            }
        });
        run(async {
            let receiver = receiver.connect().await;
            assert_eq!(receiver.recv().await, None);
        });
        other.join().unwrap();
    }
}

/// Ends that outlive the executor in which they were connected.
#[test]
fn an_end_that_outlives_its_executor_still_closes() {
    let _watchdog = (operations() <= 1_000_000).then(watchdog);
    let (sender, receiver) = new_bounded::<u8>(1);
    let is_waiting = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_waiting);
    let other = thread::spawn(move || {
        let sender = LocalExecutor::default().run(sender.connect());
        while !flag.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        // The receiver sleeps, or is about to.
        thread::sleep(Duration::from_millis(20));
        drop(sender);
    });
    run(async {
        let receiver = receiver.connect().await;
        is_waiting.store(true, Ordering::Relaxed);
        assert_eq!(receiver.recv().await, None);
    });
    other.join().unwrap();
}

/// What an end has done in its last round is known to the other one, although no round follows.
#[test]
fn an_executor_that_is_left_owes_no_wake_up() {
    let _watchdog = (operations() <= 1_000_000).then(watchdog);
    for _ in 0..operations() / 500 {
        let (sender, receiver) = new_bounded(1);
        let (back, answer) = new_bounded(1);
        let other = spawn_executor(move || async move {
            let (sender, answer) = zip(sender.connect(), answer.connect()).await;
            sender.send(0).await.unwrap();
            sender.send(1).await.unwrap();
            answer.recv().await
        });
        let ends = LocalExecutor::default().run(async {
            let (receiver, back) = zip(receiver.connect(), back.connect()).await;
            assert_eq!(receiver.recv().await, Some(0));
            assert_eq!(receiver.recv().await, Some(1));
            back.send(2).await.unwrap();
            (receiver, back)
        });
        assert_eq!(other.join().unwrap(), Some(2));
        drop(ends);
    }
}

#[test]
fn a_foreign_sender_loses_nothing() {
    let _watchdog = (operations() <= 1_000_000).then(watchdog);
    let (sender, receiver) = new_bounded(2);
    let count = operations() / 10;
    let receiving = spawn_executor(move || async move {
        let receiver = receiver.connect().await;
        let mut next = 0;
        while let Some(number) = receiver.recv().await {
            assert_eq!(number, next);
            next += 1;
        }
        next
    });
    let sender = LocalExecutor::default().run(async { sender.connect().await.into_foreign() });
    for number in 0..count {
        while sender.try_send(number).is_err() {
            thread::yield_now();
        }
    }
    drop(sender);
    assert_eq!(receiving.join().unwrap(), count);
}

/// What becomes of an end, by the numbers of its thread.
struct Fate {
    numbers: Numbers,
}

impl Fate {
    /// Lets tasks of the executor run, or sleeps, or keeps the thread from all others, or does
    /// nothing.
    async fn pause(&mut self) {
        match self.numbers.below(32) {
            0..2 => sleep(Duration::from_micros(self.numbers.below(100))).await,
            2..8 => executor().yield_now().await,
            8 => thread::sleep(Duration::from_micros(self.numbers.below(100))),
            _ => {}
        }
    }

    fn happens(&mut self, one_in: u64) -> bool {
        self.numbers.below(one_in) == 0
    }

    async fn connect<T>(&mut self, connect: impl Future<Output = T>) -> Option<T> {
        self.pause().await;
        if self.happens(8) {
            return None;
        }
        if self.happens(8) {
            return poll_once(connect).await;
        }
        Some(connect.await)
    }

    async fn send(&mut self, sender: SharedSender<Payload>, alive: &Alive, last: &Cell<u64>) {
        let Some(sender) = self.connect(sender.connect()).await else {
            return;
        };
        let sender: Rc<ConnectedSender<Payload>> = Rc::new(sender);
        for number in 1.. {
            self.pause().await;
            if self.happens(64) {
                match self.numbers.below(3) {
                    0 => sender.close(),
                    // A task that waits goes down with the executor.
                    1 => {
                        let (sender, payload) = (Rc::clone(&sender), alive.payload(1));
                        let sending = async move { drop(sender.send(payload).await) };
                        spawn_local(sending).detach();
                    }
                    _ => {}
                }
                return;
            }
            let sending = sender.send(alive.payload(5 * number + 1));
            let sent = if self.happens(8) {
                poll_once(sending).await
            } else {
                Some(sending.await)
            };
            match sent {
                Some(Ok(())) => last.set(number),
                // Given up; the number is left out.
                None => {}
                Some(Err(_)) => return,
            }
        }
    }

    /// Returns what was received last, and whether that was all.
    async fn receive(&mut self, receiver: SharedReceiver<Payload>) -> Option<(u64, bool)> {
        let receiver: ConnectedReceiver<Payload> = self.connect(receiver.connect()).await?;
        let mut last = 0;
        loop {
            self.pause().await;
            if self.happens(64) {
                return Some((last, false));
            }
            let receiving = receiver.recv();
            let received = if self.happens(8) {
                poll_once(receiving).await
            } else {
                Some(receiving.await)
            };
            match received {
                Some(Some(payload)) if payload.number == 1 => {}
                Some(Some(payload)) => {
                    let number = payload.number / 5;
                    assert!(number > last, "in order, and once");
                    last = number;
                }
                Some(None) => return Some((last, true)),
                None => {}
            }
        }
    }
}

/// Ends that are dropped while they connect, send, receive or wait, at random: the other one always
/// ends too, and gets all that was sent before.
#[test]
fn whatever_becomes_of_one_end_the_other_ends_too() {
    let _watchdog = (operations() <= 1_000_000).then(watchdog);
    for seed in 0..operations() / 200 {
        let alive = Alive::default();
        let (sender, receiver) = new_bounded(1 << (seed % 3));
        let payloads = alive.clone();
        let producer = spawn_executor(move || async move {
            let last = Cell::new(0);
            let mut fate = Fate {
                numbers: Numbers::new(2 * seed),
            };
            fate.send(sender, &payloads, &last).await;
            last.get()
        });
        let consumer = spawn_executor(move || async move {
            let mut fate = Fate {
                numbers: Numbers::new(2 * seed + 1),
            };
            fate.receive(receiver).await
        });
        let sent = producer.join().unwrap();
        if let Some((received, true)) = consumer.join().unwrap() {
            assert_eq!(received, sent, "seed {seed}");
        }
        assert_eq!(alive.count(), 0, "seed {seed}");
    }
}
