//! Shards that fail: errors that their futures return, how soon they are restarted, and how a service
//! learns of their ends while it does something else.

use std::fmt;

use nix::sys::resource::{Resource, getrlimit};

use super::pool::{outputs, unbound};
use super::shard_ends::{AN_HOUR, counter, ending, message, restarting};
use crate::common::log::hearing_everywhere;
use crate::common::prelude::*;

/// What a hook for restarts was told.
type Told = Arc<Mutex<Vec<String>>>;

fn noting() -> (Told, impl Fn(usize, &str) + Send + Sync) {
    let told = Told::default();
    let note = Arc::clone(&told);
    let hook = move |shard, reason: &str| {
        let mut note = note.lock().expect("no thread panicked");
        note.push(format!("{shard}: {reason}"));
    };
    (told, hook)
}

#[run_test]
fn restarts_of_a_shard_that_dies_at_once_are_not_used_up_in_a_moment() {
    let starts = Arc::new(Mutex::new(Vec::new()));
    let shards = restarting(1, 5).on_all_shards({
        let starts = Arc::clone(&starts);
        move || {
            starts
                .lock()
                .expect("no thread panicked")
                .push(Instant::now());
            async { panic!("at once") }
        }
    });
    let results: Vec<Result<(), _>> = shards.expect("a thread starts").join_all();
    for result in results {
        assert_eq!(message(result), "at once");
    }
    let starts = starts.lock().expect("no thread panicked");
    let pauses = starts.windows(2).map(|it| it[1] - it[0]);
    let shortest = [10, 20, 40, 80, 160].map(Duration::from_millis);
    assert_eq!(pauses.len(), shortest.len());
    for (pause, shortest) in pauses.zip(shortest) {
        assert!(pause >= shortest, "{pause:?} instead of {shortest:?}");
    }
}

#[run_test(in_child)]
fn a_descriptor_that_is_missing_for_a_moment_is_not_the_end_of_a_shard() {
    let (descriptors, _) = getrlimit(Resource::RLIMIT_NOFILE).expect("there is a limit");
    let (told, note) = noting();
    let start = counter();
    let shards = restarting(1, 1000)
        .on_shard_restart({
            let told = Arc::clone(&told);
            move |shard, reason| {
                note(shard, reason);
                if told.lock().expect("no thread panicked").len() == 3 {
                    set_limit(Resource::RLIMIT_NOFILE, descriptors);
                }
            }
        })
        .on_all_shards(move || async move {
            if start() == 0 {
                set_limit(Resource::RLIMIT_NOFILE, 0);
                panic!("without descriptors");
            }
        });
    outputs(shards.expect("a thread starts"));
    let told = told.lock().expect("no thread panicked");
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(told[0], "0: it panicked: without descriptors");
    assert!(told[1].contains("open files"), "{told:?}");
    assert!(told[2].contains("open files"), "{told:?}");
}

#[run_test(in_child)]
fn an_error_of_a_shard_is_logged_and_ends_its_pool() {
    let heard = hearing_everywhere();
    let start = counter();
    let shards = ending(3, AN_HOUR).try_on_all_shards(move || async move {
        if start() == 1 {
            return Err("the port is taken");
        }
        executor().pool_ending().cancelled().await;
        Ok(())
    });
    let mut shards = shards.expect("threads can be created");
    let (failed, result) = shards.join_first().expect("there are three");
    assert_eq!(result.expect("it has an output"), Err("the port is taken"));
    assert_eq!(outputs(shards), [Ok(()), Ok(())]);
    let heard = heard();
    let told: Vec<_> = (heard.iter())
        .filter(|it| it.level == tracing::Level::ERROR)
        .collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].message, "a shard has died: the port is taken");
    assert_eq!(told[0].field("shard"), Some(&*failed.to_string()));
    // Nor is an end in good order silent: it may be that of an `Err` from `on_all_shards`.
    let orderly = |it: &&_| heard_end(it);
    assert_eq!(heard.iter().filter(orderly).count(), 2);
}

fn heard_end(event: &crate::common::log::Heard) -> bool {
    event.level == tracing::Level::INFO && event.message == "a shard has ended"
}

#[run_test]
fn a_shard_that_fails_is_restarted_until_it_does_not() {
    for (per_minute, expected) in [(9, Ok(3)), (2, Err("failure 2".to_owned()))] {
        let (told, note) = noting();
        let start = counter();
        let shards = restarting(1, per_minute)
            .on_shard_restart(note)
            .try_on_all_shards(move || async move {
                match start() {
                    3 => Ok(3),
                    number => Err(format!("failure {number}")),
                }
            });
        let restarts = if expected.is_ok() { 3 } else { 2 };
        assert_eq!(outputs(shards.expect("a thread starts")), [expected]);
        let expected: Vec<_> = (0..restarts).map(|it| format!("0: failure {it}")).collect();
        assert_eq!(*told.lock().expect("no thread panicked"), expected);
    }
}

/// Panics where it is to be shown.
#[derive(Debug)]
struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("no words")
    }
}

#[run_test]
fn an_error_that_cannot_be_shown_and_a_hook_that_panics_are_contained() {
    let (told, note) = noting();
    let shards = restarting(1, 1)
        .on_shard_restart(move |shard, reason| {
            note(shard, reason);
            panic!("in the hook");
        })
        .try_on_all_shards(|| async { Err::<(), _>(Unspeakable) });
    let mut shards = shards.expect("a thread starts");
    let (_, result) = shards.join_first().expect("there is one");
    assert_eq!(message(result), "no words");
    let told = told.lock().expect("no thread panicked");
    assert_eq!(*told, ["0: it panicked: no words"]);
}

/// Both shards end only if tasks of the executor that waits for them run meanwhile.
#[run_test]
fn a_task_that_waits_for_shards_keeps_no_other_from_running() {
    let (fail, stop) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let start = counter();
    let shards = unbound(2).try_on_all_shards({
        let (fail, stop) = (Arc::clone(&fail), Arc::clone(&stop));
        move || async move {
            let is_first = start() == 0;
            let until = if is_first { fail } else { stop };
            while !until.load(Ordering::SeqCst) {
                sleep(Duration::from_micros(200)).await;
            }
            if is_first { Err("failed") } else { Ok(()) }
        }
    });
    let mut shards = shards.expect("threads can be created");
    LocalExecutor::default().run(async {
        let sets_soon = |flag: Arc<AtomicBool>| {
            spawn_local(async move {
                sleep(Duration::from_millis(2)).await;
                flag.store(true, Ordering::SeqCst);
            })
            .detach();
        };
        sets_soon(fail);
        let (failed, result) = shards.join_next().await.expect("there are two");
        assert_eq!(result.expect("it has an output"), Err("failed"));
        sets_soon(stop);
        let (other, result) = shards.join_next().await.expect("there is another");
        assert_eq!(
            (result.expect("it has an output"), other),
            (Ok(()), 1 - failed)
        );
        assert!(shards.join_next().await.is_none());
    });
}

#[run_test]
fn a_wait_for_shards_that_is_given_up_loses_no_end() {
    let (end, ends) = mpsc::channel::<()>();
    let ends = Arc::new(Mutex::new(ends));
    let shards = unbound(3).on_all_shards(move || async move {
        let wait = move || ends.lock().expect("no thread panicked").recv();
        executor().spawn_blocking(wait).await
    });
    let mut shards = shards.expect("threads can be created");
    LocalExecutor::default().run(async {
        assert!(poll_once(shards.join_next()).await.is_none());
        for _ in 0..3 {
            end.send(()).expect("one waits for it");
        }
        let mut ended = 0;
        while ended < 3 {
            // Given up at its first poll, or not.
            match or(shards.join_next(), async { None }).await {
                Some((_, result)) => {
                    result.expect("it ends in good order").expect("it is told");
                    ended += 1;
                }
                None => sleep(Duration::from_micros(100)).await,
            }
        }
        assert!(shards.join_next().await.is_none());
    });
}

#[run_test]
fn a_shard_that_does_not_end_is_reported_to_a_task_after_the_grace_period() {
    let grace = Duration::from_millis(20);
    let start = counter();
    let begin = Instant::now();
    let shards = ending(2, grace).try_on_all_shards(move || async move {
        if start() == 0 {
            return Err("failed");
        }
        pending::<()>().await;
        Ok(())
    });
    let mut shards = shards.expect("threads can be created");
    LocalExecutor::default().run(async {
        let (_, failed) = shards.join_next().await.expect("there are two");
        assert_eq!(failed.expect("it has an output"), Err("failed"));
        let (_, overdue) = shards.join_next().await.expect("there are two");
        assert!(begin.elapsed() >= grace);
        match overdue {
            Err(GlommioError::IoError(error)) => {
                assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
            }
            other => panic!("{other:?}"),
        }
    });
}
