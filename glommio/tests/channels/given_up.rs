//! Futures and streams that were woken for a value, and are kept and never polled again: the wake-up
//! goes on to those who wait.

use proptest::prelude::*;

use crate::common::prelude::*;

/// Lets the others run for a while.
async fn idle() {
    sleep(Duration::from_millis(1)).await;
}

/// Lets the others run until `is_so`.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if is_so() {
            return;
        }
        idle().await;
    }
    panic!("{what}");
}

/// A wake-up that was not answered is passed on once, not with each value anew.
#[run_test]
async fn a_kept_stream_does_not_make_each_value_wake_all() {
    const WORKERS: usize = 1000;
    let (sender, receiver) = local_channel::new_unbounded();
    let receiver = Rc::new(receiver);
    let mut stream = receiver.stream();
    assert!(poll_once(stream.next()).await.is_none());
    let polls = Rc::new(Cell::new(0));
    for _ in 0..WORKERS {
        let (receiver, polls) = (receiver.clone(), polls.clone());
        let counted = async move {
            loop {
                let mut next = Box::pin(receiver.recv());
                let counting = std::future::poll_fn(|cx| {
                    polls.update(|it| it + 1);
                    next.as_mut().poll(cx)
                });
                if counting.await.is_none() {
                    return;
                }
            }
        };
        spawn_local(counted).detach();
    }
    polls.set(0);
    for number in 0..100 {
        sender.try_send(number).unwrap();
        until("all wait beside a queued value", || sender.is_empty()).await;
    }
    // The one that got it, and when it waits again. A round that ends early wakes another.
    assert!(polls.get() <= 1000, "{} polls for 100 values", polls.get());
}

/// There are no rounds there.
#[test]
fn outside_an_executor_all_are_woken() {
    let (sender, receiver) = local_channel::new_unbounded();
    let mut kept = Box::pin(receiver.stream());
    let mut first = Polled::waiting(std::future::poll_fn(move |cx| {
        futures_lite::Stream::poll_next(kept.as_mut(), cx)
    }));
    let mut second = Polled::waiting(receiver.recv());
    sender.try_send(7).unwrap();
    assert!(first.is_woken() && second.is_woken());
    assert_eq!(second.finish(), Some(7));
    assert!(first.poll().is_pending());
}

#[test]
fn an_executor_that_ends_meanwhile_passes_the_wake_on() {
    let (sender, receiver) = local_channel::new_unbounded();
    let mut kept = Box::pin(receiver.recv());
    let mut waiting = Box::pin(receiver.recv());
    run(async {
        assert!(poll_once(&mut kept).await.is_none());
    });
    let mut second = Polled::waiting(async { waiting.as_mut().await });
    run(async { sender.try_send(7).unwrap() });
    assert!(second.is_woken());
    assert_eq!(second.finish(), Some(7));
}

type Kept = Pin<Box<dyn Future<Output = Option<u64>>>>;

/// Tasks that send, receive, wait with a limit and keep what they gave up, in any order.
async fn scenario(seed: u64, operations: u64) {
    let mut numbers = Numbers::new(seed);
    let capacity = 1 + numbers.below(3) as usize;
    let (sender, receiver) = local_channel::new_bounded(capacity);
    let (sender, receiver) = (Rc::new(sender), Rc::new(receiver));
    let (sent, received) = (Rc::new(Cell::new(0u64)), Rc::new(Cell::new(0u64)));
    let (sending, receiving) = (Rc::new(Cell::new(0usize)), Rc::new(Cell::new(0usize)));
    let mut kept: Vec<Kept> = Vec::new();
    let mut kept_sends: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
    for number in 0..operations {
        match numbers.below(8) {
            0 | 1 => {
                let (sender, sent, sending) = (sender.clone(), sent.clone(), sending.clone());
                sending.update(|it| it + 1);
                spawn_local(async move {
                    sender.send(number).await.unwrap();
                    sent.update(|it| it + 1);
                    sending.update(|it| it - 1);
                })
                .detach();
            }
            2 | 3 => {
                let receiver = receiver.clone();
                let (received, receiving) = (received.clone(), receiving.clone());
                receiving.update(|it| it + 1);
                spawn_local(async move {
                    receiver.recv().await.unwrap();
                    received.update(|it| it + 1);
                    receiving.update(|it| it - 1);
                })
                .detach();
            }
            4 => {
                let receiver = receiver.clone();
                let is_stream = numbers.below(2) == 0;
                let mut given_up: Kept = if is_stream {
                    Box::pin(async move { Box::pin(receiver.stream()).next().await })
                } else {
                    Box::pin(async move { receiver.recv().await })
                };
                match poll_once(given_up.as_mut()).await {
                    Some(_) => received.update(|it| it + 1),
                    None => kept.push(given_up),
                }
            }
            5 => {
                let sender = sender.clone();
                let counted = sent.clone();
                let mut given_up = Box::pin(async move {
                    sender.send(number).await.unwrap();
                    counted.update(|it| it + 1);
                });
                if poll_once(given_up.as_mut()).await.is_none() {
                    kept_sends.push(given_up);
                }
            }
            6 if !kept.is_empty() => {
                drop(kept.swap_remove(numbers.below(kept.len() as u64) as usize));
            }
            6 if !kept_sends.is_empty() => {
                drop(kept_sends.swap_remove(numbers.below(kept_sends.len() as u64) as usize));
            }
            7 if !kept.is_empty() => {
                let at = numbers.below(kept.len() as u64) as usize;
                if poll_once(kept[at].as_mut()).await.is_some() {
                    drop(kept.swap_remove(at));
                    received.update(|it| it + 1);
                }
            }
            _ => idle().await,
        }
    }
    let queued = || sender.len();
    until("one waits beside a value or a free place", || {
        (queued() == 0 || receiving.get() == 0) && (queued() == capacity || sending.get() == 0)
    })
    .await;
    assert_eq!(sent.get() - received.get(), queued() as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn none_waits_beside_a_value_whatever_is_kept(seed in any::<u64>(), operations in 0..60u64) {
        run(scenario(seed, operations));
    }
}
