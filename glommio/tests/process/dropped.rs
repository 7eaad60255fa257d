//! Children that nothing waits for any more.

use std::mem;
use std::os::unix::process::ExitStatusExt;

use super::*;

type Result = std::result::Result<(), GlommioError<()>>;

/// Would run for as long as the test, at least.
fn long() -> Command {
    let mut command = Command::new("sleep");
    command.arg("600");
    command
}

#[run_test]
async fn kill_on_drop_leaves_neither_process_nor_zombie() -> Result {
    let child = long().kill_on_drop(true).spawn()?;
    let id = child.id().expect("it was not waited for");
    assert!(exists(id));
    drop(child);
    gone(id).await;
}

#[run_test]
async fn a_future_that_is_given_up_kills_its_child() -> Result {
    let mut command = shell("echo $$; exec sleep 600");
    let child = command.kill_on_drop(true).stdout(Stdio::piped()).spawn()?;
    let id = child.id().expect("it was not waited for");
    let output = spawn_local(child.wait_with_output());
    drop(output);
    gone(id).await;
}

#[run_test]
async fn a_dropped_child_runs_on_and_is_reaped_when_it_ends() -> Result {
    let mut child = cat();
    let id = child.id().expect("it was not waited for");
    let stdin = child.stdin.take();
    drop(child);
    sleep(Duration::from_millis(2)).await;
    assert!(exists(id), "it still reads");
    drop(stdin);
    gone(id).await;
    Ok(())
}

#[run_test]
async fn a_child_that_has_ended_is_reaped_in_the_drop() -> Result {
    let mut child = cat();
    let id = child.id().expect("it was not waited for");
    drop(child.stdin.take());
    // It has ended when its zombie says so.
    let state = format!("/proc/{id}/stat");
    while !std::fs::read_to_string(&state).is_ok_and(|it| it.contains(") Z ")) {
        thread::yield_now();
    }
    drop(child);
    assert!(!exists(id));
    Ok(())
}

#[run_test(in_child)]
fn children_that_outlive_their_executor_are_reaped_by_the_next_one() {
    let start = || async {
        let mut child = cat();
        (
            child.id().expect("it was not waited for"),
            child.stdin.take(),
        )
    };
    // One is left by a task of the executor, the other is dropped outside of any.
    let (first, first_stdin) = run(start());
    let executor = LocalExecutor::default();
    let second = executor.run(async { long().kill_on_drop(true).spawn() });
    let second = second.expect("every system has it");
    let second_id = second.id().expect("it was not waited for");
    drop(executor);
    drop(second);
    drop(first_stdin);
    run(async {
        for id in [first, second_id] {
            while exists(id) {
                Command::new("true").status().await.expect("it is there");
            }
        }
    });
}

#[test]
fn a_child_whose_executor_is_gone_can_still_be_killed_and_asked_for() {
    let mut child = LocalExecutor::default()
        .run(async { long().spawn() })
        .expect("every system has it");
    run(async {
        assert!(child.wait().await.is_err(), "its executor is gone");
        child.start_kill().expect("it runs");
        loop {
            match child.try_wait().expect("it is a child") {
                Some(status) => break assert_eq!(status.signal(), Some(libc::SIGKILL)),
                None => sleep(Duration::from_millis(1)).await,
            }
        }
        assert!(child.wait().await.is_ok(), "its status is known");
    });
}

#[run_test]
async fn a_forgotten_wait_does_no_harm() -> Result {
    let mut child = Box::new(cat());
    let id = child.id().expect("it was not waited for");
    let stdin = child.stdin.take();
    let mut wait = Box::pin(child.wait());
    assert!(poll_once(&mut wait).await.is_none());
    mem::forget(wait);
    drop(stdin);
    child.wait().await?;
    assert!(!exists(id));
}

#[run_test(in_children_with_and_without_pidfds)]
fn no_descriptor_is_left_of_children() {
    run(async {
        let mut before = 0;
        for round in 0..20 {
            shell("cat; echo err >&2")
                .stdin(Stdio::null())
                .output()
                .await?;
            let dropped = cat();
            let id = dropped.id().expect("it was not waited for");
            drop(dropped);
            let mut killed = cat();
            killed.kill().await?;
            drop(killed);
            gone(id).await;
            // The task that has reaped it ends in the same turn.
            sleep(Duration::from_millis(1)).await;
            match round {
                0 => before = descriptors(),
                _ => settle(before).await,
            }
        }
        Result::Ok(())
    })
    .expect("all are there");
}
