//! When what was put off is done, and who spins.

use std::pin::{Pin, pin};
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::super::{ConnectedReceiver, ConnectedSender, ends};
use super::*;
use crate::executor::{LocalExecutor, executor};
use crate::timer::sleep;

fn connected(size: usize) -> (ConnectedSender<u32>, ConnectedReceiver<u32>) {
    let (sending, receiving) = ends::make(size);
    (
        ConnectedSender::new(sending),
        ConnectedReceiver::new(receiving),
    )
}

fn run<T>(future: impl Future<Output = T>) -> T {
    LocalExecutor::default().run(future)
}

impl Endpoint {
    fn has_pending(&self) -> bool {
        self.notifications
            .get()
            .is_some_and(|notifications| notifications.pending.get() > 0)
    }

    fn is_patient(&self) -> bool {
        self.spin.now.get().is_some()
    }

    /// Sets the end of the spin, and has it look at once.
    fn set_end(&self, end: Instant) {
        let mut spinning = self.spin.now.get().expect("one spins");
        (spinning.end, spinning.next_look) = (end, Instant::now());
        self.spin.now.set(Some(spinning));
    }
}

const HOUR: Duration = Duration::from_secs(3600);

/// Polls without a loop around it.
fn is_pending<T>(future: Pin<&mut impl Future<Output = T>>) -> bool {
    let mut cx = Context::from_waker(std::task::Waker::noop());
    future.poll(&mut cx).is_pending()
}

#[test]
fn where_no_executor_runs_nothing_is_put_off() {
    let (sender, receiver) = connected(2);
    sender.try_send(1).unwrap();
    assert!(!sender.endpoint.has_pending());
    let mut receiving = pin!(receiver.recv());
    assert!(!is_pending(receiving.as_mut()));
    assert!(!receiver.endpoint.has_pending());
}

#[run_test]
async fn what_is_put_off_is_done_when_the_round_is_over() {
    let (sender, receiver) = connected(2);
    for _ in 0..3 {
        sender.try_send(1).unwrap();
        assert_eq!(receiver.recv().await, Some(1));
        assert!(sender.endpoint.has_pending() && receiver.endpoint.has_pending());
        let limit = Instant::now() + HOUR / 60;
        while sender.endpoint.has_pending() || receiver.endpoint.has_pending() {
            assert!(Instant::now() < limit, "a round lasts for a minute");
            executor().yield_now().await;
        }
    }
}

#[test]
fn what_is_put_off_is_done_when_the_executor_is_left() {
    let (sender, receiver) = connected(2);
    for _ in 0..3 {
        run(async {
            sender.try_send(1).unwrap();
            assert_eq!(receiver.recv().await, Some(1));
            assert!(sender.endpoint.has_pending() && receiver.endpoint.has_pending());
        });
        assert!(!sender.endpoint.has_pending() && !receiver.endpoint.has_pending());
    }
}

#[run_test]
async fn a_task_that_is_seen_to_wait_is_woken_at_once() {
    let (sender, receiver) = connected(1);
    let mut receiving = pin!(receiver.recv());
    assert!(is_pending(receiving.as_mut()));
    sender.try_send(1).unwrap();
    assert!(!sender.endpoint.has_pending());
    assert!(!is_pending(receiving.as_mut()));
    assert!(receiver.endpoint.has_pending());

    sender.try_send(2).unwrap();
    let mut sending = pin!(sender.send(3));
    assert!(is_pending(sending.as_mut()));
    assert_eq!(receiver.recv().await, Some(2));
    assert!(!receiver.endpoint.has_pending());
    assert!(!is_pending(sending));
}

/// As if timers were set.
fn looking_again(sender: &ConnectedSender<u32>, receiver: &ConnectedReceiver<u32>) {
    let waits = receiver.end.receivers();
    waits.will_look_again();
    assert!(waits.tasks.may_wait() && waits.looks_again());
    assert!(!sender.endpoint.has_pending());
}

#[run_test]
async fn receivers_that_look_again_are_woken_for_half_and_for_the_rest_when_the_poll_is_over() {
    let (sender, receiver) = connected(8);
    // With a receiver that is awake, checks are put off from here on.
    sender.try_send(6).unwrap();
    assert_eq!(receiver.recv().await, Some(6));
    sender.endpoint.flush();
    let mut waiting: Vec<_> = (0..8).map(|_| Box::pin(receiver.recv())).collect();
    assert!(waiting.iter_mut().all(|it| is_pending(it.as_mut())));
    looking_again(&sender, &receiver);
    let pending = |sent: u32| {
        sender.try_send(sent).unwrap();
        sender.endpoint.notifications.get().unwrap().pending.get()
    };
    assert_eq!(
        [0, 1, 2, 3].map(pending),
        [1, 2, 3, 0],
        "half of the capacity"
    );
    assert_eq!([4, 5].map(pending), [1, 2]);
    executor().yield_now().await;
    assert!(!sender.endpoint.has_pending(), "the poll is over");
    assert!(!waiting[..6].iter_mut().any(|it| is_pending(it.as_mut())));
}

/// The sender puts off its checks when the receiver begins to wait.
#[run_test]
async fn a_receiver_that_may_have_been_missed_looks_twice_more_and_sleeps() {
    let (sender, receiver) = connected(64);
    for number in 0..3 {
        sender.try_send(number).unwrap();
        assert_eq!(receiver.recv().await, Some(number));
    }
    let waits = receiver.end.receivers();
    assert!(waits.is_put_off());
    let mut receiving = pin!(receiver.recv());
    assert!(is_pending(receiving.as_mut()));
    assert!(waits.looks_again());
    // It is not told: as if the sender saw that it looks again, and works on.
    sender.end.store(3).unwrap();
    let begun = Instant::now();
    while waits.looks_again() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never sleeps");
        sleep(super::super::waits::LOOK_AGAIN * 4).await;
    }
    assert!(!waits.tasks.may_wait(), "it was notified by its own look");
    assert!(!is_pending(receiving));
}

#[run_test]
async fn a_receiver_that_waits_while_no_check_is_put_off_sets_no_timer() {
    let (sender, receiver) = connected(64);
    let mut receiving = pin!(receiver.recv());
    assert!(is_pending(receiving.as_mut()));
    assert!(receiver.endpoint.notifications.get().is_none());
    sender.try_send(1).unwrap();
    assert!(!is_pending(receiving));
}

#[run_test]
async fn no_check_is_put_off_for_an_item_that_has_woken_a_receiver() {
    let (sender, receiver) = connected(64);
    // A request, and another one when the answer is there, in one round.
    for number in 0..2 {
        let mut receiving = pin!(receiver.recv());
        assert!(is_pending(receiving.as_mut()));
        sender.try_send(number).unwrap();
        assert!(!receiver.end.receivers().is_put_off());
        assert!(!is_pending(receiving));
    }
}

#[run_test]
async fn a_sender_is_woken_for_half_and_for_the_rest_when_the_round_is_over() {
    let (sender, receiver) = connected(8);
    for number in 0..8 {
        sender.try_send(number).unwrap();
    }
    let mut waiting: Vec<_> = (0..6).map(|it| Box::pin(sender.send(it))).collect();
    assert!(waiting.iter_mut().all(|it| is_pending(it.as_mut())));
    for pending in [1, 2, 3, 0, 1] {
        assert!(receiver.recv().await.is_some());
        assert_eq!(
            receiver.endpoint.notifications.get().unwrap().pending.get(),
            pending
        );
    }
    let limit = Instant::now() + HOUR / 60;
    while receiver.endpoint.has_pending() {
        assert!(Instant::now() < limit, "a round lasts for a minute");
        executor().yield_now().await;
    }
    assert!(!waiting[..5].iter_mut().any(|it| is_pending(it.as_mut())));
}

#[run_test]
async fn an_end_that_is_made_a_foreign_one_owes_nothing() {
    let (sender, _receiver) = connected(1);
    sender.try_send(1).unwrap();
    let notifications = Rc::clone(sender.endpoint.notifications.get().unwrap());
    drop(sender.into_foreign());
    assert_eq!(notifications.pending.get(), 0);
}

#[test]
fn the_first_waits_and_those_outside_of_executors_have_no_patience() {
    let (_sender, receiver) = connected(1);
    run(async {
        for number in 0..16 {
            let mut receiving = pin!(receiver.recv());
            assert!(is_pending(receiving.as_mut()));
            assert_eq!(receiver.endpoint.is_patient(), number == 15);
        }
    });
    receiver.endpoint.spin.pause.set(0);
    let mut receiving = pin!(receiver.recv());
    assert!(is_pending(receiving.as_mut()));
    assert!(!receiver.endpoint.is_patient());
}

/// Also one that is dropped before its time counts as a failure: it may be dropped again and again.
#[run_test]
async fn failures_make_it_rare_and_quick_finds_make_it_usual() {
    let (sender, receiver) = connected(1);
    let Endpoint { spin, .. } = &receiver.endpoint;
    spin.pause.set(0);
    for pause in [15, 31, 63, 127, 255, 511, 1023, 2047, 4095, 4095] {
        let mut receiving = pin!(receiver.recv());
        assert!(is_pending(receiving.as_mut()));
        assert!(receiver.endpoint.is_patient());
        if pause == 31 {
            // The first look after its time.
            receiver.endpoint.set_end(Instant::now());
            assert!(is_pending(receiving.as_mut()));
        } else {
            receiving.set(receiver.recv());
        }
        assert!(!receiver.endpoint.is_patient());
        assert_eq!(spin.pause.replace(0), pause);
    }
    for _ in 0..2 {
        let mut receiving = pin!(receiver.recv());
        assert!(is_pending(receiving.as_mut()));
        receiver.endpoint.set_end(Instant::now() + HOUR);
        sender.try_send(1).unwrap();
        assert!(!is_pending(receiving.as_mut()));
        assert_eq!((spin.pause.get(), spin.next_pause.get()), (0, 1));
    }
}

/// What the slow ones cost is little, and it may be the last of them.
#[run_test]
async fn one_slow_find_is_forgiven_and_two_are_a_failure() {
    let (sender, receiver) = connected(1);
    let Endpoint { spin, .. } = &receiver.endpoint;
    spin.pause.set(0);
    for (end, pause) in [(0, 0), (3600, 0), (0, 0), (0, 1)] {
        let mut receiving = pin!(receiver.recv());
        assert!(is_pending(receiving.as_mut()));
        let end = Instant::now() + Duration::from_secs(end);
        receiver.endpoint.set_end(end);
        sender.try_send(1).unwrap();
        assert!(!is_pending(receiving.as_mut()));
        assert_eq!(spin.pause.get(), pause);
    }
}

/// It looks again by itself, and sleeps in the end: an item that comes late wakes it.
#[run_test]
async fn patience_ends_in_a_wait() {
    let (sender, receiver) = connected(1);
    receiver.endpoint.spin.pause.set(0);
    let receiver = Rc::new(receiver);
    let waiting = Rc::clone(&receiver);
    let task = executor().spawn_local(async move { waiting.recv().await });
    // Where the machine stood still, the task has not had its turn yet.
    for _ in 0..1000 {
        sleep(Duration::from_millis(2)).await;
        if !receiver.endpoint.is_patient() {
            break;
        }
    }
    assert!(!receiver.endpoint.is_patient());
    assert!(receiver.end.receivers().tasks.may_wait());
    sender.try_send(1).unwrap();
    assert_eq!(task.await, Some(1));
}

#[run_test]
async fn a_task_with_patience_keeps_its_place() {
    let (sender, receiver) = connected(2);
    receiver.endpoint.spin.pause.set(0);
    let mut first = pin!(receiver.recv());
    assert!(is_pending(first.as_mut()));
    let mut second = pin!(receiver.recv());
    assert!(is_pending(second.as_mut()));
    receiver.endpoint.set_end(Instant::now());
    // Its spin is over: it waits, before the other one.
    assert!(is_pending(first.as_mut()));
    let mut order = Vec::new();
    for number in 1..=2 {
        sender.try_send(number).unwrap();
    }
    for receiving in [first, second] {
        order.push(receiving.await);
    }
    assert_eq!(order, [Some(1), Some(2)]);
}

/// A sender that spins goes on when there is room for more than one item.
#[run_test]
async fn a_sender_with_patience_waits_for_half_of_the_room() {
    let (sender, receiver) = connected(4);
    for number in 0..4 {
        sender.try_send(number).unwrap();
    }
    sender.endpoint.spin.pause.set(0);
    let mut sending = pin!(sender.send(4));
    assert!(is_pending(sending.as_mut()));
    sender.endpoint.set_end(Instant::now() + HOUR);
    assert_eq!(receiver.recv().await, Some(0));
    assert!(is_pending(sending.as_mut()));
    assert_eq!(receiver.recv().await, Some(1));
    sender.endpoint.set_end(Instant::now() + HOUR);
    assert!(!is_pending(sending.as_mut()));

    // The end of the receiver is worth it, too.
    sender.try_send(5).unwrap();
    sender.endpoint.spin.pause.set(0);
    let mut sending = pin!(sender.send(6));
    assert!(is_pending(sending.as_mut()));
    sender.endpoint.set_end(Instant::now() + HOUR);
    drop(receiver);
    assert!(!is_pending(sending.as_mut()));
}
