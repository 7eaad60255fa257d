//! Tokens of one executor that are attached to those of another.

use glommio::sync::{CancellationToken, RemoteCancellation};

use crate::common::prelude::*;

/// Attaches on another executor, and waits there for the end.
fn attached_elsewhere(foreign: RemoteCancellation) -> (impl FnOnce(), mpsc::Receiver<()>) {
    let (ready, is_ready) = mpsc::channel();
    let shard = spawn_executor(move || async move {
        let token = foreign.attach();
        let child = token.child_token();
        drop(token);
        ready.send(()).unwrap();
        child.cancelled().await;
        assert!(foreign.is_cancelled());
    });
    (move || shard.join().unwrap(), is_ready)
}

#[run_test]
fn cancelling_the_origin_reaches_an_executor_that_sleeps() {
    let origin = CancellationToken::new();
    let (join, is_ready) = attached_elsewhere(origin.foreign_child());
    is_ready.recv().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    origin.cancel();
    join();
}

#[run_test]
fn cancelling_a_parent_of_the_origin_reaches_it() {
    let root = CancellationToken::new();
    let origin = root.child_token();
    let (join, is_ready) = attached_elsewhere(origin.foreign_child());
    is_ready.recv().unwrap();
    root.cancel();
    join();
}

#[run_test]
fn dropping_the_last_handle_of_the_origin_cancels() {
    let origin = CancellationToken::new();
    let foreign = origin.foreign_child();
    let (join, is_ready) = attached_elsewhere(foreign.clone());
    is_ready.recv().unwrap();
    drop(origin.clone());
    assert!(!foreign.is_cancelled(), "there is another handle");
    drop(origin);
    assert!(foreign.is_cancelled());
    join();
}

#[run_test]
async fn a_late_attachment_is_cancelled_at_once() {
    let origin = CancellationToken::new();
    let foreign = origin.foreign_child();
    origin.cancel();
    assert!(foreign.attach().is_cancelled());
    assert!(origin.foreign_child().attach().is_cancelled());
    let dropped = CancellationToken::new().foreign_child();
    assert!(dropped.attach().is_cancelled());
}

#[run_test]
async fn an_attached_token_can_be_cancelled_alone() {
    let origin = CancellationToken::new();
    let foreign = origin.foreign_child();
    let (first, second) = (foreign.attach(), foreign.attach());
    first.cancel();
    assert!(!origin.is_cancelled() && !second.is_cancelled());
    origin.cancel();
    second.cancelled().await;
}

#[run_test]
fn an_attached_token_can_be_an_origin() {
    let origin = CancellationToken::new();
    let foreign = origin.foreign_child();
    let (send, receive) = mpsc::channel();
    let relay = spawn_executor(move || async move {
        let token = foreign.attach();
        send.send(token.foreign_child()).unwrap();
        token.cancelled().await;
    });
    let (join, is_ready) = attached_elsewhere(receive.recv().unwrap());
    is_ready.recv().unwrap();
    origin.cancel();
    join();
    relay.join().unwrap();
}

/// Each attachment has a task, which ends with its tokens.
#[run_test]
async fn attachments_that_are_dropped_leave_no_task() {
    let origin = CancellationToken::new();
    let foreign = origin.foreign_child();
    let queue = executor().create_task_queue(
        glommio::Shares::default(),
        glommio::Latency::NotImportant,
        "attached",
    );
    let task = glommio::spawn_local_into(
        async move {
            for _ in 0..100 {
                let child = foreign.attach().child_token();
                drop(child);
            }
            let cancelled = foreign.attach();
            cancelled.cancel();
        },
        queue,
    );
    task.unwrap().await;
    while executor().remove_task_queue(queue).is_err() {
        // The watchdog bounds this: the queue goes when its last task is over.
        sleep(Duration::from_millis(1)).await;
    }
    drop(origin);
}

#[test]
fn a_token_outlives_its_executor() {
    let origin = CancellationToken::new();
    let token = run(async { origin.foreign_child().attach() });
    origin.cancel();
    let _ = token.is_cancelled();
    drop(token.child_token());
    drop(token);
}

#[test]
fn attaching_outside_an_executor_panics() {
    let foreign = CancellationToken::new().foreign_child();
    let message = panic_of(|| foreign.attach());
    assert!(message.contains("no LocalExecutor"), "{message}");
}

#[run_test]
fn a_thread_without_an_executor_sees_the_end() {
    let origin = CancellationToken::new();
    let foreign = origin.foreign_child();
    let thread = std::thread::spawn(move || wait_until(|| foreign.is_cancelled()));
    origin.cancel();
    thread.join().unwrap();
}
