//! Very many timers at one instant: all fire, once, in order, and the executor goes on with its
//! other work meanwhile.

use crate::common::prelude::*;
use crate::harness::{HOUR, ms, poll, run_unpreempted, until};

const MANY: usize = 100_000;

/// `count` actions that are armed for a time far off, in the caller's queue.
async fn armed<A, F>(count: usize, action: A) -> Vec<TimerActionOnce<()>>
where
    A: Fn(usize) -> F,
    F: Future<Output = ()> + 'static,
{
    let actions: Vec<_> = (0..count)
        .map(|n| TimerActionOnce::do_in(HOUR, action(n)))
        .collect();
    // Queues are first come, first served: when this task has its turn again, so had all of them.
    executor().yield_now().await;
    actions
}

/// The past will do for an instant that they have in common: nothing has to be waited for, and they
/// are due in one pass.
#[run_test]
async fn a_hundred_thousand_at_one_instant_fire_once_and_in_order() {
    let log = Log::default();
    let actions = armed(MANY, |n| {
        let log = log.clone();
        async move { log.push(n) }
    })
    .await;
    let when = Instant::now();
    for action in &actions {
        action.rearm_at(when);
    }
    for action in actions {
        assert_eq!(action.join().await, Some(()));
    }
    assert_eq!(log.entries(), (0..MANY).collect::<Vec<_>>());
}

/// The same without a rearm: created for one instant that is still to come.
#[run_test]
async fn identical_deadlines_fire_in_order_of_creation() {
    for count in [5, 300, 5000] {
        // Far enough off that all are armed by then, whatever the machine.
        let mut distance = ms(50);
        loop {
            let log = Log::default();
            let when = Instant::now() + distance;
            let actions: Vec<_> = (0..count)
                .map(|n| {
                    let log = log.clone();
                    TimerActionOnce::do_at(when, async move { log.push(n) })
                })
                .collect();
            executor().yield_now().await;
            let in_time = Instant::now() < when;
            for action in actions {
                action.join().await;
            }
            if in_time {
                assert_eq!(log.entries(), (0..count).collect::<Vec<_>>());
                break;
            }
            distance *= 2;
        }
    }
}

/// Counts how often a task got its turn while a storm went on.
async fn turns_during_a_storm(spawn: impl FnOnce(Rc<Cell<u64>>) -> Task<()>) -> u64 {
    let fired = Rc::new(Cell::new(0));
    let turns = Rc::new(Cell::new(0_u64));
    let span = Rc::new(RefCell::new((0, 0)));
    let actions = armed(MANY, |n| {
        let (fired, turns, span) = (Rc::clone(&fired), Rc::clone(&turns), Rc::clone(&span));
        async move {
            fired.update(|it| it + 1);
            if n == 0 {
                span.borrow_mut().0 = turns.get();
            }
            if n == MANY - 1 {
                span.borrow_mut().1 = turns.get();
            }
        }
    })
    .await;
    let neighbour = spawn(Rc::clone(&turns));
    let when = Instant::now();
    for action in &actions {
        action.rearm_at(when);
    }
    until(|| fired.get() == MANY).await;
    neighbour.cancel().await;
    let (first, last) = *span.borrow();
    last - first
}

async fn count_turns(turns: Rc<Cell<u64>>) {
    loop {
        turns.update(|it| it + 1);
        executor().yield_now().await;
    }
}

/// Passes are bounded, and follow one another when the tasks that the last one woke have run: a
/// task of the same queue, first come, first served, is behind one of them, not behind all. So it
/// has some 390 turns. It has fewer where a pass is not worked off within a millisecond, hence the
/// tries.
#[run_test]
async fn a_neighbour_in_the_queue_has_its_turns_meanwhile() {
    loop {
        let turns = turns_during_a_storm(|turns| spawn_local(count_turns(turns))).await;
        assert!(turns >= 1, "the storm was one batch");
        if turns >= 200 {
            break;
        }
    }
}

/// Another queue has its share of the thread.
#[run_test]
async fn another_queue_has_its_turns_meanwhile() {
    let queue = queue("other");
    let turns = turns_during_a_storm(|turns| spawn_in(queue, count_turns(turns))).await;
    assert!(turns >= 10, "{turns} turns during a storm");
}

/// So have sockets: completions are taken between the passes, and the tasks they wake are behind
/// one of them.
#[run_test]
async fn sockets_have_their_turns_meanwhile() {
    loop {
        let heard = turns_during_a_storm(|heard| {
            spawn_local(async move {
                loop {
                    hear_datagrams(u8::MAX, || heard.update(|it| it + 1)).await;
                }
            })
        });
        if heard.await >= 100 {
            break;
        }
    }
}

/// The passes follow one another, also those that only sort and fire nothing: no slice in between
/// is longer than need be. Whole slices would last for hours here.
#[run_test(run_unpreempted)]
async fn a_storm_beside_a_busy_task_does_not_wait_for_its_slices() {
    let fired = Rc::new(Cell::new(0));
    let actions = armed(MANY, |_| {
        let fired = Rc::clone(&fired);
        async move { fired.update(|it| it + 1) }
    })
    .await;
    let neighbour = spawn_local(count_turns(Rc::default()));
    let when = Instant::now();
    actions.iter().for_each(|action| action.rearm_at(when));
    until(|| fired.get() == MANY).await;
    neighbour.cancel().await;
}

/// A storm without end: there are always more timers due than one pass takes. What other threads,
/// sockets and later timers have to say is heard all the same.
#[run_test(run_unpreempted)]
async fn in_an_endless_storm_the_executor_hears_the_rest_of_the_world() {
    let is_over = Rc::new(Cell::new(false));
    let tasks: Vec<_> = (0..2000)
        .map(|_| {
            let is_over = Rc::clone(&is_over);
            spawn_local(async move {
                while !is_over.get() {
                    // Hardly ahead, so that all of them are due at each turn, or over at once.
                    sleep(Duration::from_micros(1)).await;
                    executor().yield_now().await;
                }
            })
        })
        .collect();
    for _ in 0..100 {
        executor().spawn_blocking(|| ()).await;
    }
    hear_datagrams(50, || ()).await;
    for _ in 0..20 {
        sleep(ms(1)).await;
    }
    is_over.set(true);
    join_all(tasks).await;
}

/// Receives datagrams that are sent only when the receiver waits, so that the ring must tell of
/// them.
async fn hear_datagrams(count: u8, on_each: impl Fn()) {
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("loopback is there");
    let address = receiver.local_addr().expect("it is bound");
    let sender = Rc::new(UdpSocket::bind("127.0.0.1:0").expect("loopback is there"));
    for n in 0..count {
        let sending = spawn_local({
            let sender = Rc::clone(&sender);
            async move {
                executor().yield_now().await;
                sender.send_to(&[n], address).await
            }
        });
        // Polled first in this turn: nothing is there yet.
        let mut received = [0];
        let (length, _) = receiver
            .recv_from(&mut received)
            .await
            .expect("it is bound");
        assert_eq!(length, 1);
        assert_eq!(received, [n]);
        assert_eq!(sending.await.ok(), Some(1));
        on_each();
    }
}

/// A timer armed while others are due waits its turn by deadline, and is not lost between passes.
#[run_test]
async fn armed_between_the_passes() {
    let log = Log::default();
    let actions = armed(2000, |n| {
        let log = log.clone();
        async move {
            log.push(n);
            // Due before all that is left; the reactor comes to it between two batches.
            if n % 100 == 0 {
                let log = log.clone();
                drop(TimerActionOnce::do_at(Instant::now() - HOUR, async move {
                    log.push(10_000 + n)
                }));
            }
        }
    })
    .await;
    let when = Instant::now();
    actions.iter().for_each(|action| action.rearm_at(when));
    for action in actions {
        action.join().await;
    }
    until(|| log.len() == 2020).await;
    let own: Vec<_> = log.entries().into_iter().filter(|&n| n < 10_000).collect();
    assert_eq!(own, (0..2000).collect::<Vec<_>>());
}

/// Half of them are cancelled while they are due and wait for their pass: these are not woken.
#[run_test]
async fn cancelled_between_the_passes() {
    const COUNT: usize = 4000;
    let log = Log::default();
    let timers: Rc<RefCell<Vec<Option<Timer>>>> = Rc::default();
    for n in 0..COUNT {
        let mut timer = Timer::new(HOUR);
        let (log, owner) = (log.clone(), Rc::downgrade(&timers));
        let waker = on_wake(move || {
            log.push(n);
            // The one half a turn away, which no pass has come to yet, or which is long gone.
            let timers = owner.upgrade().expect("the test holds them");
            let gone = timers.borrow_mut()[(n + COUNT / 2) % COUNT].take();
            drop(gone);
        });
        assert!(poll(&mut timer, &waker).is_pending());
        timers.borrow_mut().push(Some(timer));
    }
    for timer in timers.borrow_mut().iter_mut().flatten() {
        timer.reset(Duration::ZERO);
    }
    until(|| log.len() >= COUNT / 2).await;
    sleep(ms(2)).await;
    let entries = log.entries();
    let (kept, cancelled) = entries.split_at(COUNT / 2);
    assert_eq!(kept, (0..COUNT / 2).collect::<Vec<_>>());
    // Only what was in the same pass as its canceller may have been on its way.
    assert!(cancelled.len() < COUNT / 4 && cancelled.iter().all(|&n| n >= COUNT / 2));
    // Those that were woken are left, and say that they are over.
    for timer in timers.borrow_mut().iter_mut().flatten() {
        assert!(poll(timer, Waker::noop()).is_ready());
    }
}
