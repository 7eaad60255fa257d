//! The shared forms between executors and threads: values arrive, and sleepers are woken.

use glommio::channels::{broadcast, watch};

use crate::common::prelude::*;

/// Rounds of a test that crosses threads in each.
fn rounds() -> u64 {
    operations() / 100
}

#[run_test]
fn oneshots_lose_nothing_between_threads() {
    let (requests, work) = std::sync::mpsc::channel::<oneshot::SharedSender<u64>>();
    let thread = thread::spawn(move || {
        let mut numbers = Numbers::new(7);
        for (reply, number) in work.into_iter().zip(0..) {
            (0..numbers.below(200)).for_each(|_| std::hint::spin_loop());
            match number % 3 {
                0 => drop(reply),
                _ => drop(reply.send(number)),
            }
        }
    });
    LocalExecutor::default().run(async {
        for number in 0..rounds() {
            let (reply, answer) = oneshot::shared();
            requests.send(reply).unwrap();
            if number % 7 == 0 {
                continue;
            }
            let expected = (number % 3 != 0).then_some(number);
            assert_eq!(answer.await.ok(), expected);
        }
    });
    drop(requests);
    thread.join().unwrap();
}

#[run_test]
fn the_latest_value_is_always_seen_between_threads() {
    let (sender, receiver) = watch::shared(0);
    let watchers: Vec<_> = (0..2)
        .map(|_| {
            let mut receiver = receiver.clone();
            thread::spawn(move || {
                LocalExecutor::default().run(async move {
                    let mut last = 0;
                    while receiver.changed().await.is_ok() {
                        let value = receiver.get();
                        assert!(value >= last);
                        last = value;
                    }
                    last
                })
            })
        })
        .collect();
    drop(receiver);
    for value in 1..=rounds() {
        sender.send(value).unwrap();
        if value % 10 == 0 {
            thread::yield_now();
        }
    }
    drop(sender);
    for watcher in watchers {
        assert_eq!(watcher.join().unwrap(), rounds());
    }
}

#[run_test]
fn broadcasts_arrive_in_order_between_threads() {
    let (sender, receiver) = broadcast::shared(8);
    let listeners: Vec<_> = (0..2)
        .map(|_| {
            let mut receiver = receiver.clone();
            thread::spawn(move || {
                LocalExecutor::default().run(async move {
                    let mut next = 0;
                    loop {
                        match receiver.recv().await {
                            Ok(value) => {
                                assert_eq!(value, next);
                                next += 1;
                            }
                            Err(broadcast::RecvError::Lagged(missed)) => next += missed,
                            Err(broadcast::RecvError::Closed) => return next,
                        }
                    }
                })
            })
        })
        .collect();
    drop(receiver);
    for value in 0..rounds() {
        sender.send(value).unwrap();
        if value % 4 == 0 {
            thread::yield_now();
        }
    }
    drop(sender);
    for listener in listeners {
        assert_eq!(listener.join().unwrap(), rounds(), "received or missed");
    }
}
