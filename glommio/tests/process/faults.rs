//! Systems that lack something, and processes that interfere.

use std::os::unix::process::ExitStatusExt;

use nix::sys::resource::Resource;

use super::*;
use crate::common::run_in_child;
use crate::common::seccomp::deny_all;

/// No child of this process is left, neither running nor as a zombie.
fn assert_no_children() {
    // SAFETY: the call is given no memory to write to.
    let found = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
    assert_eq!(found, -1, "a child is left");
    assert_eq!(
        io::Error::last_os_error().raw_os_error(),
        Some(libc::ECHILD)
    );
}

#[run_test(in_children_with_and_without_pidfds)]
fn without_descriptors_there_is_an_error_and_nothing_is_left() {
    run(async {
        // What is opened once and kept.
        Command::new("true")
            .output()
            .await
            .expect("descriptors are free");
        let before = descriptors();
        let (mut failed, mut succeeded) = (0, 0);
        for free in 0..24 {
            set_limit(Resource::RLIMIT_NOFILE, (before + free) as u64);
            let spawned = Command::new("true")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn();
            set_limit(Resource::RLIMIT_NOFILE, 1024);
            match spawned {
                Ok(mut child) => {
                    child.wait().await.expect("it runs");
                    succeeded += 1;
                }
                Err(error) => {
                    let error = io::Error::from(error);
                    assert_eq!(error.raw_os_error(), Some(libc::EMFILE), "{error}");
                    failed += 1;
                }
            }
            settle(before).await;
            assert_no_children();
        }
        assert!(
            failed > 0 && succeeded > 0,
            "{failed} failed, {succeeded} did not"
        );
    });
}

/// In whole, or in part, as on Linux 5.3.
#[test]
fn children_are_started_awaited_and_killed_without_pidfds() {
    let lacks = [
        (vec![libc::SYS_pidfd_open], libc::ENOSYS),
        (vec![libc::SYS_pidfd_open], libc::EPERM),
        (vec![libc::SYS_pidfd_send_signal], libc::ENOSYS),
        (vec![libc::SYS_pidfd_send_signal], libc::EPERM),
        (
            vec![libc::SYS_pidfd_open, libc::SYS_pidfd_send_signal],
            libc::ENOSYS,
        ),
    ];
    for (index, (calls, errno)) in lacks.into_iter().enumerate() {
        let index = index.to_string();
        in_child_with(&[("LACK", &index)], || {
            // The child has one of them.
            if std::env::var("LACK").is_ok_and(|it| it == index) {
                deny_all(&calls, errno);
                run(all_of_a_child());
            }
        });
    }
}

async fn all_of_a_child() {
    // What is opened once and kept.
    let warm = Command::new("true").status().await.expect("true");
    assert!(warm.success());
    let before = descriptors();
    // Ends before, and after, it is waited for.
    for seconds in ["0", "0.01"] {
        let mut child = Command::new("sleep").arg(seconds).spawn().expect("sleep");
        assert!(child.wait().await.expect("it ends").success());
        assert!(child.wait().await.expect("it is known").success());
    }
    let status = shell("exit 7").status().await.expect("a shell");
    assert_eq!(status.code(), Some(7));
    let output = Command::new("echo").arg("hello").output().await;
    assert_eq!(output.expect("echo").stdout, b"hello\n");

    let mut child = Command::new("sleep").arg("600").spawn().expect("sleep");
    assert_eq!(child.try_wait().expect("it runs"), None);
    child.kill().await.expect("it is ours");
    let status = child.wait().await.expect("it is known");
    assert_eq!(status.signal(), Some(libc::SIGKILL));

    // Dropped, with and without a signal: reaped all the same.
    for seconds in ["600", "0.01"] {
        let mut command = Command::new("sleep");
        let child = command.arg(seconds).kill_on_drop(seconds == "600").spawn();
        let child = child.expect("sleep");
        let id = child.id().expect("it was not waited for");
        drop(child);
        gone(id).await;
    }

    // Reaped by other code: an error, and no signal to a process that may have the number by now.
    let mut child = Command::new("true").spawn().expect("true");
    let id = child.id().expect("it was not waited for").cast_signed();
    // SAFETY: the call is given no memory to write to.
    assert_eq!(unsafe { libc::waitpid(id, std::ptr::null_mut(), 0) }, id);
    let errno = |error: GlommioError<()>| io::Error::from(error).raw_os_error();
    assert_eq!(child.start_kill().map_err(errno), Err(Some(libc::ESRCH)));
    assert_eq!(child.wait().await.map_err(errno), Err(Some(libc::ECHILD)));
    drop(child);
    assert_no_children();
    settle(before).await;
}

#[run_test(run_in_child)]
async fn a_child_that_other_code_has_reaped_is_an_error_and_is_never_signalled() {
    let mut child = Command::new("true")
        .kill_on_drop(true)
        .spawn()
        .expect("it is there");
    let id = child.id().expect("it was not waited for").cast_signed();
    // SAFETY: the call is given no memory to write to.
    assert_eq!(unsafe { libc::waitpid(id, std::ptr::null_mut(), 0) }, id);
    let errno = |error: GlommioError<()>| io::Error::from(error).raw_os_error();
    assert_eq!(child.wait().await.map_err(errno), Err(Some(libc::ECHILD)));
    assert_eq!(child.start_kill().map_err(errno), Err(Some(libc::ESRCH)));
}

#[run_test(run_in_child)]
async fn a_forked_process_leaves_the_children_of_its_parent_alone() {
    let mut child = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it is there");
    // SAFETY: the forked process drops the child, which makes no system call that needs
    // another thread, and ends.
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        drop(child);
        // SAFETY: always allowed.
        unsafe { libc::_exit(42) };
    }
    let mut status = 0;
    // SAFETY: `status` is a place for a number.
    assert_eq!(unsafe { libc::waitpid(forked, &raw mut status, 0) }, forked);
    assert_eq!(libc::WEXITSTATUS(status), 42);
    // One that was killed reads nothing more.
    let input = child.stdin.as_mut().expect("it is piped");
    input.write_all(b"!").await.expect("it reads");
    let output = child.stdout.as_mut().expect("it is piped");
    let mut echoed = [0];
    output.read_exact(&mut echoed).await.expect("it runs on");
    assert_eq!(&echoed, b"!");
    child.kill().await.expect("it runs");
    let status = child.wait().await.expect("it is known");
    assert_eq!(status.signal(), Some(libc::SIGKILL));
}
