//! Systems that lack something, and processes that interfere.

use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::GlommioError;
use nix::sys::resource::Resource;

use super::*;
use crate::common::{descriptors, in_child, run, set_limit};

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

#[test]
fn without_descriptors_there_is_an_error_and_nothing_is_left() {
    in_child(
        "faults::without_descriptors_there_is_an_error_and_nothing_is_left",
        || {
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
                    assert_eq!(descriptors(), before);
                    assert_no_children();
                }
                assert!(
                    failed > 0 && succeeded > 0,
                    "{failed} failed, {succeeded} did not"
                );
            });
        },
    );
}

#[test]
fn where_pidfds_are_forbidden_the_error_says_so_and_nothing_is_left() {
    in_child(
        "faults::where_pidfds_are_forbidden_the_error_says_so_and_nothing_is_left",
        || {
            run(async {
                forbid(libc::SYS_pidfd_open);
                let error = Command::new("sleep")
                    .arg("600")
                    .spawn()
                    .expect_err("it is forbidden");
                assert!(error.to_string().contains("allow pidfd_open"), "{error}");
                assert_eq!(io::Error::from(error).kind(), ErrorKind::Unsupported);
                assert_no_children();
            });
        },
    );
}

/// Has a system call fail with `ENOSYS` on this thread from here on, as sandboxes do.
fn forbid(call: libc::c_long) {
    let step = |code: u32, jump_if_true, jump_if_false, value| libc::sock_filter {
        code: code as u16,
        jt: jump_if_true,
        jf: jump_if_false,
        k: value,
    };
    let mut steps = [
        // The number of the call is the first field of what a filter is given.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            call as u32,
        ),
        step(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32,
        ),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: the first call takes numbers, the second reads a program that outlives it.
    let failed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            )
    };
    assert_eq!(failed, 0, "{}", io::Error::last_os_error());
}

#[test]
fn a_child_that_other_code_has_reaped_is_an_error_and_is_never_signalled() {
    in_child(
        "faults::a_child_that_other_code_has_reaped_is_an_error_and_is_never_signalled",
        || {
            run(async {
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
            });
        },
    );
}

#[test]
fn a_forked_process_leaves_the_children_of_its_parent_alone() {
    in_child(
        "faults::a_forked_process_leaves_the_children_of_its_parent_alone",
        || {
            run(async {
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
            });
        },
    );
}
