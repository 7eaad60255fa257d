//! A task that is ready at its first poll.

use std::task::Poll;

use super::executor::{Executor, Log, poll_once};

/// The future is dropped in the run that completes it, the output when it is done with.
#[test]
fn output_reaches_the_handle() {
    let executor = Executor::new();
    let log = Log::default();
    let (in_future, output) = (log.on_drop("future"), log.on_drop("output"));
    let mut handle = executor.spawn(async move {
        let _in_future = in_future;
        output
    });

    assert!(poll_once(&mut handle).is_pending());
    assert!(!handle.is_finished());
    assert_eq!(executor.run(), 1);
    assert_eq!(log.take(), ["future"]);
    assert!(handle.is_finished());
    assert_eq!(
        executor.registered(),
        0,
        "the run said that the task is over"
    );

    let Poll::Ready(Some(output)) = poll_once(&mut handle) else {
        panic!("the task has completed");
    };
    assert!(log.take().is_empty());
    drop(output);
    assert_eq!(log.take(), ["output"]);
    assert!(matches!(poll_once(&mut handle), Poll::Ready(None)));
    assert_eq!(
        executor.meter().allocated(),
        1,
        "the handle keeps the memory"
    );
    drop(handle);
    assert_eq!(executor.meter().allocated(), 0);
    assert!(log.take().is_empty());
}

/// A detached task's output is dropped as soon as it is there, after the future.
#[test]
fn output_of_a_detached_task_is_dropped() {
    let executor = Executor::new();
    let log = Log::default();
    let (in_future, output) = (log.on_drop("future"), log.on_drop("output"));
    drop(executor.spawn(async move {
        let _in_future = in_future;
        output
    }));
    assert_eq!(
        executor.queued(),
        1,
        "a task that is scheduled is not abandoned"
    );
    executor.run();
    assert_eq!(log.take(), ["future", "output"]);
    assert_eq!(executor.meter().allocated(), 0);
}

/// An output that nobody took goes with the handle.
#[test]
fn unread_output_is_dropped_with_the_handle() {
    let executor = Executor::new();
    let log = Log::default();
    let output = log.on_drop("output");
    let handle = executor.spawn(async move { output });
    executor.run();
    assert!(log.take().is_empty());
    drop(handle);
    assert_eq!(log.take(), ["output"]);
    assert_eq!(executor.meter().allocated(), 0);
}

/// Sizes and alignments of future and output that differ share the stage.
#[test]
fn stage_fits_the_larger_of_future_and_output() {
    #[repr(align(128))]
    #[derive(Debug, PartialEq)]
    struct Aligned([u8; 300]);

    let executor = Executor::new();
    let mut handle = executor.spawn(async { Aligned([7; 300]) });
    executor.run();
    assert_eq!(poll_once(&mut handle), Poll::Ready(Some(Aligned([7; 300]))));

    let large = [3u8; 5000];
    let mut handle = executor.spawn(async move { large.iter().map(|&b| b as u64).sum::<u64>() });
    executor.run();
    assert_eq!(poll_once(&mut handle), Poll::Ready(Some(15_000)));
}
