//! Tests in processes of their own: the test program started anew, and forks.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::{patient, skipped, watchdog};

/// Runs `body`, a closure of a test, in a process of its own: this test program started anew for that test.
pub fn in_child(body: impl FnOnce()) {
    in_child_with(&[], body);
}

/// The name of the test that `body` is a closure of, or that has given one to the function that `body` is a closure of.
fn test_of<F>(_body: &F) -> &'static str {
    let path = std::any::type_name::<F>();
    let path = path
        .split("::{{closure}}")
        .next()
        .expect("there is a first part");
    let path = path.rsplit('<').next().expect("there is a last part");
    path.split_once("::")
        .expect("the program and the path in it")
        .1
}

/// As [`in_child`], with further environment variables.
pub fn in_child_with(environment: &[(&str, &str)], body: impl FnOnce()) {
    in_child_of(without_input, environment, body);
}

/// As [`in_child`], with this standard input.
pub fn in_child_with_input(input: impl Into<Stdio>, body: impl FnOnce()) {
    let start = |itself: &OsStr| {
        let mut command = Command::new(itself);
        command.stdin(input);
        command
    };
    in_child_of(start, &[], body);
}

pub const CHILD: &str = "GLOMMIO_TEST_CHILD";

fn is_child(test: &str) -> bool {
    std::env::var(CHILD).is_ok_and(|running| running == test)
}

/// Runs `body` in a process that `start` makes of the path of this test program.
fn in_child_of(
    start: impl FnOnce(&OsStr) -> Command,
    environment: &[(&str, &str)],
    body: impl FnOnce(),
) {
    let _watchdog = watchdog();
    let test = test_of(&body);
    if is_child(test) {
        return body();
    }
    let environment = [&[(CHILD, test)], environment].concat();
    let output = child_output(start, &only(test), &environment);
    let printed = succeeded(test, output);
    assert!(
        printed.contains("1 passed"),
        "{test} is not the name of this test:\n{printed}"
    );
}

/// As [`in_child`], for a `body` that ends the process by itself, with success. What it has printed
/// by then.
pub fn ending_child(body: impl FnOnce()) -> String {
    let test = test_of(&body);
    if is_child(test) {
        let _watchdog = watchdog();
        body();
        eprintln!("{test} was to end the process");
        std::process::abort();
    }
    let _watchdog = watchdog();
    let output = child_output(without_input, &only(test), &[(CHILD, test)]);
    let printed = succeeded(test, output);
    assert!(
        printed.contains("running 1 test"),
        "{test} is not the name of this test:\n{printed}"
    );
    printed
}

fn without_input(program: &OsStr) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

/// The arguments with which a test program runs one test.
fn only(test: &str) -> [&str; 4] {
    ["--exact", test, "--nocapture", "--test-threads=1"]
}

/// Runs all tests of this program again whose names have one of `filters` in them, in one process
/// of their own with further environment variables; but not `test`, which is where this is called.
pub fn again_with(test: &str, environment: &[(&str, &str)], filters: &[&str]) {
    let _watchdog = watchdog();
    let arguments = [filters, &["--skip", test]].concat();
    let output = child_output(without_input, &arguments, environment);
    let printed = succeeded(test, output);
    assert!(
        !printed.contains(" 0 passed"),
        "there are no such tests:\n{printed}"
    );
}

/// As [`in_child`], in a time namespace in which the monotonic clock is so many seconds ahead of
/// the host's, or behind it. Says so where that is not allowed, and does nothing.
pub fn in_time_namespace(offset_seconds: i64, body: impl FnOnce()) {
    let offset = offset_seconds.to_string();
    in_namespace(["-T", "-rT"], &["--monotonic", &offset], body);
}

/// As [`in_child`], in a network namespace of its own, in which the settings of the network may be
/// changed and no device is up. Says so where that is not allowed, and does nothing.
pub fn in_network_namespace(body: impl FnOnce()) {
    in_namespace(["-n", "-rn"], &[], body);
}

/// In a namespace that `unshare` makes with the first of `flags` that is allowed, and `more`.
fn in_namespace(flags: [&str; 2], more: &[&str], body: impl FnOnce()) {
    if is_child(test_of(&body)) {
        return in_child(body);
    }
    let unshare = |flags: &str, program: &OsStr| {
        let mut command = without_input("unshare".as_ref());
        command.arg(flags).args(more).arg(program);
        command
    };
    let is_allowed = |flags: &&str| {
        let trial = unshare(flags, "true".as_ref()).output();
        trial.is_ok_and(|trial| trial.status.success())
    };
    match flags.into_iter().find(is_allowed) {
        Some(flags) => in_child_of(|itself| unshare(flags, itself), &[], body),
        None => skipped::skipped("`unshare` may make no such namespace here"),
    }
}

/// As [`in_child`], for a `body` that aborts its process; what it wrote to the standard error.
pub fn aborts_in_child(body: impl FnOnce()) -> String {
    let _watchdog = watchdog();
    let test = test_of(&body);
    if is_child(test) {
        body();
        std::process::exit(0);
    }
    let output = child_output(without_input, &only(test), &[(CHILD, test)]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        output.status.signal(),
        Some(libc::SIGABRT),
        "the child of {test} ended with {}:\n{stderr}",
        output.status
    );
    stderr
}

/// What this test program does when it is started anew.
fn child_output(
    start: impl FnOnce(&OsStr) -> Command,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Output {
    let itself = std::env::current_exe().expect("the program knows where it is");
    start(itself.as_os_str())
        .args(arguments)
        .envs(environment.iter().copied())
        .output()
        .expect("the test program can be started again")
}

/// What the child of a test has printed, which must have succeeded.
fn succeeded(test: &str, output: Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    skipped::relay(&stderr);
    assert!(
        output.status.success(),
        "the child of {test} ended with {}\n{stdout}\n{stderr}",
        output.status
    );
    stdout
}

/// Runs `child` in a forked child of this process, which is a child of a test, and asserts that it ended well.
pub fn fork(child: impl FnOnce()) {
    let patience = patient(Duration::from_secs(100)).as_secs();
    // SAFETY: the child runs what the test needs: memory, the log of a panic, descriptors, a ring. None of the other
    // threads of this process, which are asleep, holds a lock that these take.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "{}", std::io::Error::last_os_error());
    if pid == 0 {
        // SAFETY: it takes a number. The watchdog is not in this process.
        unsafe { libc::alarm(patience.try_into().expect("a few hours")) };
        let is_well = catch_unwind(AssertUnwindSafe(child)).is_ok();
        // SAFETY: always allowed. No destructors of what belongs to the parent.
        unsafe { libc::_exit(if is_well { FORK_ENDED_WELL } else { 1 }) };
    }
    wait_for_fork(pid);
}

/// What a forked child ends with.
pub const FORK_ENDED_WELL: i32 = 42;

/// Waits for a forked child, and asserts that it ended well.
pub fn wait_for_fork(pid: libc::pid_t) {
    let mut status = 0;
    // SAFETY: `status` is a place for a number.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(waited, pid);
    assert!(
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == FORK_ENDED_WELL,
        "the forked child ended with status {status:#x}"
    );
}
