//! How children end, and who is told.

use std::io::ErrorKind;
use std::os::unix::process::{CommandExt, ExitStatusExt};

use glommio::future::timeout;

use super::*;

type Result = std::result::Result<(), GlommioError<()>>;

#[run_test]
async fn the_status_is_that_of_the_program() -> Result {
    assert!(Command::new("true").status().await?.success());
    assert_eq!(Command::new("false").status().await?.code(), Some(1));
    for code in [0, 1, 2, 127, 255] {
        let status = shell(&format!("exit {code}")).status().await?;
        assert_eq!((status.code(), status.signal()), (Some(code), None));
    }
}

#[run_test]
async fn a_signal_that_ends_the_program_is_in_its_status() -> Result {
    // None that a shell ignores in what it starts in the background, and its children after it.
    for signal in [libc::SIGTERM, libc::SIGKILL, libc::SIGUSR1] {
        let status = shell(&format!("kill -{signal} $$")).status().await?;
        assert_eq!((status.code(), status.signal()), (None, Some(signal)));
        assert!(!status.core_dumped());
    }
}

#[run_test]
async fn a_status_is_the_same_however_often_it_is_asked_for() -> Result {
    let mut child = shell("exit 7").spawn()?;
    let id = child.id().expect("it was not waited for");
    assert_eq!(child.wait().await?.code(), Some(7));
    assert_eq!(child.wait().await?.code(), Some(7));
    assert_eq!(child.try_wait()?.and_then(|it| it.code()), Some(7));
    assert!(child.id().is_none() && !exists(id), "it is reaped");
    child.start_kill()?;
    child.kill().await
}

#[run_test]
async fn a_program_that_is_not_there_is_not_found() {
    let error = Command::new("/no/such/program").spawn().expect_err("none");
    assert_eq!(std::io::Error::from(error).kind(), ErrorKind::NotFound);
    let error = Command::new("/no/such/program").output().await;
    let error = std::io::Error::from(error.expect_err("none"));
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[run_test]
async fn a_wait_that_is_given_up_loses_nothing() -> Result {
    let mut child = shell("read line; exit 5").stdin(Stdio::piped()).spawn()?;
    let stdin = child.stdin.take();
    for _ in 0..10 {
        assert!(poll_once(child.wait()).await.is_none(), "it reads");
        let waited = timeout(Duration::from_micros(100), child.wait()).await;
        assert!(waited.is_err(), "it reads");
    }
    drop(stdin);
    assert_eq!(child.wait().await?.code(), Some(5));
}

#[run_test]
async fn a_child_may_be_waited_for_in_one_task_and_then_in_another() -> Result {
    let mut child = shell("read line; exit 6").stdin(Stdio::piped()).spawn()?;
    let stdin = child.stdin.take();
    // Its waker is that of this task.
    assert!(poll_once(child.wait()).await.is_none());
    let other = spawn_local(async move { child.wait().await });
    drop(stdin);
    assert_eq!(other.await?.code(), Some(6));
}

#[run_test]
async fn wait_closes_an_input_that_was_not_taken_and_try_wait_does_not() -> Result {
    let mut child = cat();
    assert_eq!(child.try_wait()?, None);
    assert!(child.stdin.is_some());
    assert!(child.wait().await?.success());
    assert!(child.stdin.is_none());
}

#[run_test]
async fn other_tasks_run_while_one_waits() -> Result {
    let mut child = cat();
    let stdin = child.stdin.take();
    let ticks = Rc::new(Cell::new(0));
    let counting = spawn_local({
        let ticks = Rc::clone(&ticks);
        async move {
            for _ in 0..5 {
                sleep(Duration::from_millis(1)).await;
                ticks.set(ticks.get() + 1);
            }
            drop(stdin);
        }
    });
    child.wait().await?;
    assert_eq!(ticks.get(), 5);
    counting.await;
}

#[run_test]
async fn many_children_end_with_their_own_statuses() -> Result {
    let waits: Vec<_> = (0..64)
        .map(|code| {
            let status = shell(&format!("exit {code}")).status();
            spawn_local(async move { (code, status.await) })
        })
        .collect();
    for wait in waits {
        let (code, status) = wait.await;
        assert_eq!(status?.code(), Some(code));
    }
}

#[run_test]
async fn kill_ends_a_child_that_ignores_other_signals() -> Result {
    let mut child = shell("trap '' TERM INT; echo; read line")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let id = child.id().expect("it was not waited for");
    child.kill().await?;
    assert_eq!(child.wait().await?.signal(), Some(libc::SIGKILL));
    assert!(!exists(id));
}

#[run_test]
async fn the_settings_of_a_standard_command_are_kept() -> Result {
    let mut std = std::process::Command::new("/bin/sh");
    std.args(["-c", "echo $0 $WHO; pwd; kill -0 -$$ && echo leader"]);
    // A name by which the sh of busybox knows what it is.
    std.env("WHO", "me").current_dir("/").arg0("my/sh");
    let mut command = Command::from(std);
    let output = command.process_group(0).output().await?;
    assert_eq!(output.stdout, b"my/sh me\n/\nleader\n");
}

#[test]
fn outside_of_an_executor_nothing_is_started() {
    let folder = tempfile::tempdir().expect("there is space");
    let file = folder.path().join("started");
    let mut touch = Command::new("touch");
    touch.arg(&file);
    let message = panic_of(|| touch.spawn());
    assert!(message.contains("no LocalExecutor is running"), "{message}");
    assert!(!file.exists());
    // And the command is as good as before.
    run(async { touch.status().await }).expect("it is started");
    assert!(file.exists());
}
