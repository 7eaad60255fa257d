//! What the death of one shard means to the others, and in which order ends are told.

use glommio::channels::shared_channel;
use glommio::{PoolThreadHandles, Result, ShardExitPolicy};

use super::pool::{outputs, unbound};
use crate::common::log::hearing_everywhere;
use crate::common::prelude::*;
use crate::common::{permitted_cpus, set_of};

pub const AN_HOUR: Duration = Duration::from_secs(3600);

pub fn message<T>(result: Result<T, ()>) -> String {
    match result {
        Err(GlommioError::BuilderError(BuilderErrorKind::ThreadPanic(panic))) => {
            panic.message().expect("it has one").to_owned()
        }
        Err(other) => panic!("not a panic: {other:?}"),
        Ok(_) => panic!("not a panic"),
    }
}

/// Numbers what calls it: 0, 1, and so on.
pub fn counter() -> impl Fn() -> usize + Clone + Send + 'static {
    let count = Arc::new(AtomicUsize::new(0));
    move || count.fetch_add(1, Ordering::SeqCst)
}

#[run_test]
fn the_end_of_a_later_shard_is_told_while_an_earlier_one_runs() {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..4).map(|_| mpsc::channel::<()>()).unzip();
    let receivers = Arc::new(Mutex::new(
        receivers.into_iter().map(Some).collect::<Vec<_>>(),
    ));
    let place = Arc::new(Mutex::new(Vec::new()));
    let shards = unbound(4).on_all_shards({
        let (receivers, place) = (Arc::clone(&receivers), Arc::clone(&place));
        move || async move {
            let number = {
                let mut place = place.lock().expect("no thread panicked");
                place.push(thread::current().id());
                place.len() - 1
            };
            let mine = receivers.lock().expect("no thread panicked")[number].take();
            let ended = executor().spawn_blocking(move || mine.expect("taken once").recv());
            let _ = ended.await;
            assert_ne!(number, 1, "dies");
            number
        }
    });
    let mut shards = shards.expect("threads can be created");
    let threads: Vec<_> = (shards.handles().iter())
        .map(|handle| handle.thread().id())
        .collect();
    wait_until(|| place.lock().expect("no thread panicked").len() == 4);
    let place = place.lock().expect("no thread panicked").clone();
    for (left, number) in [3, 1, 2, 0].into_iter().enumerate() {
        senders[number].send(()).expect("it waits for this");
        let (shard, result) = shards.join_first().expect("some are left");
        assert_eq!(threads[shard], place[number]);
        match number {
            1 => assert!(message(result).contains("dies")),
            _ => assert_eq!(result.expect("it ends in good order"), number),
        }
        let handles: Vec<_> = (shards.handles().iter())
            .map(|handle| handle.thread().id())
            .collect();
        assert_eq!(handles.len(), 3 - left);
        assert!(!handles.contains(&threads[shard]), "the others are left");
    }
    assert!(shards.join_first().is_none());
    assert!(shards.join_all().is_empty());
}

#[run_test]
fn ends_that_were_not_asked_for_are_told_in_the_order_in_which_they_happened() {
    let may_end = Arc::new(Mutex::new(None));
    let mut shards = unbound(3)
        .on_all_shards({
            let may_end = Arc::clone(&may_end);
            move || async move {
                let this = Some(thread::current().id());
                while *may_end.lock().expect("no thread panicked") != this {
                    sleep(Duration::from_micros(200)).await;
                }
            }
        })
        .expect("threads can be created");
    let order = [2, 0, 1];
    for shard in order {
        let handle = &shards.handles()[shard];
        *may_end.lock().expect("no thread panicked") = Some(handle.thread().id());
        wait_until(|| handle.is_finished());
    }
    let told = order.map(|_| shards.join_first().expect("there are three").0);
    assert_eq!(told, order);
}

#[run_test]
fn join_all_returns_what_join_first_has_left_in_its_order() {
    let mut shards = unbound(4)
        .on_all_shards(|| async { thread::current().id() })
        .expect("threads can be created");
    let mut expected: Vec<_> = (shards.handles().iter())
        .map(|handle| handle.thread().id())
        .collect();
    let (first, output) = shards.join_first().expect("there are four");
    assert_eq!(
        output.expect("it ends in good order"),
        expected.remove(first)
    );
    assert_eq!(outputs(shards), expected);
}

#[run_test(in_child)]
fn a_death_is_logged_also_if_nothing_joins() {
    let heard = hearing_everywhere();
    let _shards: PoolThreadHandles<()> = unbound(1)
        .on_all_shards(|| async { panic!("of old age") })
        .expect("a thread starts");
    let is_told = || {
        let heard = heard();
        heard
            .into_iter()
            .find(|it| it.message.starts_with("a shard has died"))
    };
    wait_until(|| is_told().is_some());
    let told = is_told().expect("just seen");
    assert_eq!(told.message, "a shard has died: it panicked: of old age");
    assert_eq!(told.field("shard"), Some("0"));
}

pub fn ending(shards: usize, grace: Duration) -> LocalExecutorPoolBuilder {
    unbound(shards).on_shard_end(ShardExitPolicy::EndPool { grace })
}

#[run_test]
fn a_death_ends_the_pool() {
    let start = counter();
    let shards = ending(4, AN_HOUR).on_all_shards(move || async move {
        assert_ne!(start(), 2, "dies");
        // Several tokens, in tasks as well.
        let ending = executor().pool_ending();
        let other = spawn_local(async { executor().pool_ending().cancelled().await });
        ending.child_token().cancelled().await;
        other.await;
        ending.is_cancelled() && executor().pool_ending().is_cancelled()
    });
    let results = shards.expect("threads can be created").join_all();
    let (told, died): (Vec<_>, Vec<_>) = results.into_iter().partition(|it| it.is_ok());
    assert_eq!((told.len(), died.len()), (3, 1));
    assert!(told.into_iter().all(|it| it.expect("it is")));
}

/// Those that end because of it end after it.
#[run_test]
fn the_death_that_ends_the_pool_is_told_first() {
    for _ in 0..300 {
        let number = counter();
        let shards = ending(3, AN_HOUR).on_all_shards(move || async move {
            if number() == 0 {
                panic!("as planned");
            }
            executor().pool_ending().cancelled().await;
        });
        let mut shards = shards.expect("threads are free");
        let (_, result) = shards.join_first().expect("there are three");
        assert_eq!(message(result), "as planned");
        assert!(shards.join_all().into_iter().all(|it| it.is_ok()));
    }
}

#[run_test]
fn an_orderly_end_ends_no_other_shard() {
    let start = counter();
    let (go_on, wait) = (Arc::new(AtomicBool::new(false)), ());
    let mut shards = ending(2, Duration::ZERO)
        .on_all_shards({
            let go_on = Arc::clone(&go_on);
            move || async move {
                let () = wait;
                let ending = executor().pool_ending();
                while start() > 0 && !go_on.load(Ordering::SeqCst) {
                    sleep(Duration::from_micros(200)).await;
                }
                ending.is_cancelled()
            }
        })
        .expect("threads can be created");
    let (_, first) = shards.join_first().expect("there are two");
    assert!(!first.expect("it ends in good order"));
    go_on.store(true, Ordering::SeqCst);
    assert_eq!(outputs(shards), [false]);
}

#[run_test]
fn a_shard_that_does_not_end_is_reported_after_the_grace_period_and_lives() {
    let start = counter();
    let go_on = Arc::new(AtomicBool::new(false));
    let (ends, ended) = mpsc::channel();
    let shards = ending(2, Duration::from_millis(20)).on_all_shards({
        let go_on = Arc::clone(&go_on);
        move || async move {
            assert_ne!(start(), 0, "dies");
            while !go_on.load(Ordering::SeqCst) {
                sleep(Duration::from_micros(200)).await;
            }
            ends.send("alive").expect("the test waits");
        }
    });
    let results = shards.expect("threads can be created").join_all();
    let overdue: Vec<_> = (results.iter())
        .filter_map(|it| match it {
            Err(GlommioError::IoError(error)) => Some(error),
            _ => None,
        })
        .collect();
    assert_eq!(overdue.len(), 1, "{results:?}");
    assert_eq!(overdue[0].kind(), std::io::ErrorKind::TimedOut);
    let text = overdue[0].to_string();
    assert!(text.contains("still runs after 20ms"), "{text}");
    go_on.store(true, Ordering::SeqCst);
    assert_eq!(ended.recv(), Ok("alive"));
}

#[run_test]
fn the_shard_whose_death_ends_the_pool_is_not_overdue() {
    for _ in 0..100 {
        let shards = ending(1, Duration::ZERO).on_all_shards(|| async { panic!("dies") });
        let mut shards = shards.expect("threads can be created");
        let (_, died): (_, Result<(), _>) = shards.join_first().expect("there is one");
        let died = died.expect_err("it has died");
        assert!(matches!(died, GlommioError::BuilderError(_)), "{died}");
    }
}

#[run_test]
fn outside_such_a_pool_the_token_is_never_cancelled() {
    LocalExecutor::default().run(async {
        assert!(!executor().pool_ending().is_cancelled());
    });
    let start = counter();
    let mut shards = unbound(2)
        .on_all_shards(move || async move {
            let ending = executor().pool_ending();
            assert_ne!(start(), 0, "dies");
            while start() < 10_000 {
                executor().yield_now().await;
            }
            ending.is_cancelled()
        })
        .expect("threads can be created");
    while let Some((_, result)) = shards.join_first() {
        assert!(!result.unwrap_or(false));
    }
}

pub fn restarting(shards: usize, per_minute: u32) -> LocalExecutorPoolBuilder {
    unbound(shards).on_shard_end(ShardExitPolicy::Restart { per_minute })
}

#[run_test]
fn a_dead_shard_is_started_again_on_its_cpu_with_a_fresh_executor() {
    let cpu = permitted_cpus()[0];
    let (seen, sees) = mpsc::channel();
    let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Custom(vec![set_of(cpu)]))
        .on_shard_end(ShardExitPolicy::Restart { per_minute: 9 })
        .on_all_shards({
            let start = counter();
            move || {
                let start = start();
                let here = (executor().id(), permitted_cpus(), thread::current().id());
                seen.send(here).expect("the test waits");
                // Before there is a future, in it, with a payload that panics, and at last not.
                assert_ne!(start, 0, "in the generator");
                async move {
                    sleep(Duration::from_micros(100)).await;
                    match start {
                        1 => panic!("in the future"),
                        2 => std::panic::panic_any(Mutex::new(bomb())),
                        _ => executor().spawn_blocking(permitted_cpus).await,
                    }
                }
            }
        })
        .expect("the CPU exists");
    assert_eq!(outputs(shards), [vec![cpu]]);
    let seen: Vec<_> = sees.iter().collect();
    assert_eq!(seen.len(), 4);
    for (before, after) in seen.iter().zip(&seen[1..]) {
        assert!(before.0 < after.0, "a number of its own: {seen:?}");
        assert_eq!((&before.1, before.2), (&after.1, after.2));
    }
    assert_eq!(seen[0].1, [cpu]);
}

#[run_test]
fn a_shard_that_dies_too_often_stays_dead_and_the_others_live() {
    for per_minute in [0, 1, 4] {
        let deaths = Arc::new(AtomicUsize::new(0));
        let start = counter();
        let mut shards = restarting(2, per_minute)
            .on_all_shards({
                let deaths = Arc::clone(&deaths);
                move || async move {
                    if start() == 0 {
                        while deaths.load(Ordering::SeqCst) < per_minute as usize + 2 {
                            sleep(Duration::from_micros(200)).await;
                        }
                    } else {
                        deaths.fetch_add(1, Ordering::SeqCst);
                        panic!("always");
                    }
                }
            })
            .expect("threads can be created");
        let (_, died) = shards.join_first().expect("there are two");
        assert!(message(died).contains("always"));
        // The first start, and one for each restart.
        assert_eq!(
            deaths.fetch_add(1, Ordering::SeqCst),
            per_minute as usize + 1
        );
        outputs(shards);
    }
}

#[run_test]
fn old_ends_of_channels_to_a_restarted_shard_are_closed() {
    let (sender, receiver) = shared_channel::new_bounded::<u32>(4);
    let (back, replies) = shared_channel::new_bounded::<u32>(4);
    let ends = Arc::new(Mutex::new(Some((receiver, back))));
    let (restarted, is_restarted) = mpsc::channel();
    let shards = restarting(1, 1)
        .on_all_shards(move || async move {
            let taken = ends.lock().expect("no thread panicked").take();
            let Some((receiver, back)) = taken else {
                return restarted.send(()).expect("the test waits");
            };
            let (receiver, back) = (receiver.connect().await, back.connect().await);
            let first = receiver.recv().await.expect("it is sent");
            back.send(first + 1).await.expect("it is awaited");
            // Held by a task that waits, as well.
            let receiver = Rc::new(receiver);
            let held = Rc::clone(&receiver);
            spawn_local(async move {
                held.recv().await;
                pending::<()>().await;
            })
            .detach();
            receiver.recv().await;
            panic!("with both ends");
        })
        .expect("a thread starts");
    LocalExecutor::default().run(async {
        let (sender, replies) = (sender.connect().await, replies.connect().await);
        sender.send(1).await.expect("it is received");
        assert_eq!(replies.recv().await, Some(2));
        sender.send(2).await.expect("there is a place");
        sender.send(3).await.expect("there is a place");
        assert_eq!(replies.recv().await, None);
        while sender.send(4).await.is_ok() {
            sleep(Duration::from_micros(200)).await;
        }
        assert!(matches!(sender.send(5).await, Err(GlommioError::Closed(_))));
    });
    outputs(shards);
    is_restarted.recv().expect("it was");
}

#[run_test(in_child)]
fn restarts_leave_no_thread_and_no_descriptor_behind() {
    let (fds, threads_before) = (descriptors(), threads());
    let start = counter();
    let shards = restarting(2, 100)
        .on_all_shards(move || async move {
            let start = start();
            spawn_local(sleep(AN_HOUR)).detach();
            executor().spawn_blocking(|| ()).await;
            assert!(start > 10, "again");
        })
        .expect("threads can be created");
    outputs(shards);
    wait_until(|| threads() == threads_before);
    assert_eq!(descriptors(), fds);
}

#[run_test]
fn a_stall_handler_is_used_again_after_a_restart() {
    #[derive(Debug)]
    struct Asked(mpsc::Sender<thread::ThreadId>);
    impl glommio::StallDetectionHandler for Asked {
        fn threshold(&self, _: glommio::TaskQueueHandle, _: Duration) -> Option<Duration> {
            let _ = self.0.send(thread::current().id());
            None
        }
    }
    let (asked, asks) = mpsc::channel();
    let (before, reached) = mpsc::channel();
    let start = counter();
    let handlers =
        move || -> Box<dyn glommio::StallDetectionHandler> { Box::new(Asked(asked.clone())) };
    let shards = restarting(1, 1)
        .detect_stalls(Some(Box::new(handlers)))
        .on_all_shards(move || async move {
            sleep(Duration::from_micros(100)).await;
            if start() == 0 {
                panic!("dies");
            }
            before.send(()).expect("the test waits");
            sleep(Duration::from_micros(100)).await;
        })
        .expect("a thread starts");
    outputs(shards);
    reached.recv().expect("it was restarted");
    // Two turns at least in each of both lives.
    assert!(asks.iter().count() >= 4);
}
