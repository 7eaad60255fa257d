//! Runs the binary as a user does, and lets happen to it what happens to processes.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use std::{fs, thread};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use procfs::process::{Process, all_processes};
use serde_json::Value;

/// A soak that has begun, in a process group of its own.
struct Running {
    monitor: Child,
    stdout: BufReader<ChildStdout>,
    shown: String,
    /// Its drop says that no process hangs.
    _watchdog: Sender<()>,
}

impl Running {
    /// Started with these arguments and little to do.
    fn with(arguments: &[&str]) -> Self {
        let mut monitor = soak()
            .args(["--workload", "re-entrancy", "--load", "0.02"])
            .args(arguments)
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("the binary was built for this test");
        let stdout = monitor.stdout.take().expect("it is piped");
        let mut running = Running {
            _watchdog: start_watchdog(Pid::from_raw(monitor.id().cast_signed())),
            monitor,
            stdout: BufReader::new(stdout),
            shown: String::new(),
        };
        // Printed by the worker when it is about to start its executors.
        running.until("workloads: ");
        running
    }

    fn until(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            let length = self.stdout.read_line(&mut line).expect("it is UTF-8");
            assert_ne!(length, 0, "ended without {text}: {}", self.shown);
            self.shown.push_str(&line);
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.monitor.id().cast_signed())
    }

    /// The process that the monitor has started.
    fn worker(&self) -> Pid {
        let processes = all_processes().expect("procfs is mounted");
        let mut stats = processes.filter_map(|it| it.ok()?.stat().ok());
        let worker = stats.find(|it| it.ppid == self.pid().as_raw());
        Pid::from_raw(worker.expect("the worker has printed something").pid)
    }

    fn to_monitor(&self, signal: Signal) {
        kill(self.pid(), signal).expect("it was not waited for");
    }

    fn to_group(&self, signal: Signal) {
        killpg(self.pid(), signal).expect("its leader was not waited for");
    }

    /// Waits for it.
    fn end(mut self) -> (ExitStatus, String) {
        self.stdout
            .read_to_string(&mut self.shown)
            .expect("it is UTF-8");
        let status = self.monitor.wait().expect("it was started");
        (status, std::mem::take(&mut self.shown))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A test that fails leaves nothing running; one that has waited for the end finds no
        // process.
        let _ = self.monitor.kill();
        let _ = self.monitor.wait();
    }
}

/// Kills the group if the sender is not dropped for a long time: a test that would hang then fails
/// by what it reads, or by the status.
fn start_watchdog(group: Pid) -> Sender<()> {
    let (watchdog, ended) = mpsc::channel();
    thread::spawn(move || {
        if ended.recv_timeout(HANGS) == Err(RecvTimeoutError::Timeout) {
            // It may have ended this very moment.
            let _ = killpg(group, Signal::SIGKILL);
        }
    });
    watchdog
}

fn soak() -> Command {
    Command::new(env!("CARGO_BIN_EXE_soak"))
}

/// What a process does, `Z` if it is gone.
fn state(pid: Pid) -> char {
    let stat = Process::new(pid.as_raw()).and_then(|process| process.stat());
    stat.map_or('Z', |stat| stat.state)
}

fn wait_until(pid: Pid, wanted: char) {
    let began = Instant::now();
    while state(pid) != wanted {
        assert!(began.elapsed() < HANGS, "{pid} is {}", state(pid));
        thread::sleep(Duration::from_millis(5));
    }
}

/// A path for a file of this test.
fn temporary(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("supervisor");
    fs::create_dir_all(&directory).expect("cargo made the one above it");
    directory.join(name)
}

fn read_json(path: &Path) -> Value {
    let json = fs::read(path).expect("it was asked for");
    serde_json::from_slice(&json).expect("it is JSON")
}

/// The first interrupt, whichever process it is sent to, ends the run early, with the verdict on
/// what ran.
#[test]
fn an_interrupt_ends_the_run_with_its_verdict() {
    type Send = fn(&Running, Signal);
    let send: [(Signal, Send); 4] = [
        (Signal::SIGINT, Running::to_monitor),
        (Signal::SIGINT, Running::to_group),
        (Signal::SIGTERM, Running::to_monitor),
        // As timeout(1) does it: to its child, and then to the group.
        (Signal::SIGTERM, |running, signal| {
            running.to_monitor(signal);
            running.to_group(signal);
        }),
    ];
    for (index, (signal, send)) in send.into_iter().enumerate() {
        let running = Running::with(&["--duration", "60s"]);
        send(&running, signal);
        let (status, shown) = running.end();
        assert!(shown.contains("interrupted"), "{index}: {shown}");
        assert!(!shown.contains("verdict: FAIL"), "{index}: {shown}");
        assert!(is_unbroken(status), "{index}: {shown}");
    }
}

/// A worker that does not answer the first interrupt is ended by the second.
#[test]
fn the_second_interrupt_ends_it_at_once() {
    let running = Running::with(&["--duration", "60s"]);
    let worker = running.worker();
    kill(worker, Signal::SIGSTOP).expect("it is there");
    wait_until(worker, 'T');
    // Several that come while the monitor does not run are one to it.
    while state(running.pid()) != 'Z' {
        running.to_group(Signal::SIGINT);
        thread::sleep(Duration::from_millis(1_100));
    }
    let (status, shown) = running.end();
    assert_eq!(status.code(), Some(130), "{shown}");
    wait_until(worker, 'Z');
}

/// A worker that is not over long after its time is killed, which is a failure in words and in
/// JSON.
#[test]
fn a_worker_that_hangs_fails() {
    let json = temporary("hangs.json");
    let path = json.to_str().expect("our own name is UTF-8");
    let running = Running::with(&["--duration", "1s", "--grace", "5s", "--json", path]);
    let worker = running.worker();
    kill(worker, Signal::SIGSTOP).expect("it is there");
    let (status, shown) = running.end();
    assert_eq!(status.code(), Some(1), "{shown}");
    assert!(shown.contains("had not ended 5s after its time"), "{shown}");
    assert!(shown.ends_with("verdict: FAIL\n"), "{shown}");
    wait_until(worker, 'Z');
}

/// A worker that crashes is a failure in words and in JSON.
#[test]
fn a_worker_that_crashes_fails() {
    for signal in [Signal::SIGABRT, Signal::SIGILL, Signal::SIGKILL] {
        let json = temporary(&format!("crash-{signal}.json"));
        let path = json.to_str().expect("our own name is UTF-8");
        let mut running = Running::with(&["--duration", "60s", "--json", path]);
        // It has begun for certain when it has shown a sample.
        running.until("live");
        kill(running.worker(), signal).expect("it is there");
        let (status, shown) = running.end();
        assert_eq!(status.code(), Some(1), "{shown}");
        assert!(shown.contains(&format!("died of {signal}")), "{shown}");
        assert!(shown.ends_with("verdict: FAIL\n"), "{shown}");
        let record = read_json(&json);
        assert_eq!(record["outcome"], "fail");
        let words = record["words"][0].as_str().unwrap_or_default();
        assert!(words.contains(&format!("died of {signal}")), "{record}");
    }
}

/// Nothing is left behind by a monitor that is killed, not even a worker that is stopped.
#[test]
fn a_worker_does_not_outlive_its_monitor() {
    for is_stopped in [false, true] {
        let running = Running::with(&["--duration", "60s"]);
        let worker = running.worker();
        if is_stopped {
            kill(worker, Signal::SIGSTOP).expect("it is there");
            wait_until(worker, 'T');
        }
        running.to_monitor(Signal::SIGKILL);
        wait_until(worker, 'Z');
    }
}

/// Ctrl-Z stops both processes; for the worker that is a stall, so that nothing was late.
#[test]
fn a_pause_is_a_stall() {
    let json = temporary("pause.json");
    let path = json.to_str().expect("our own name is UTF-8");
    let running = Running::with(&["--duration", "60s", "--json", path]);
    let (monitor, worker) = (running.pid(), running.worker());
    running.to_group(Signal::SIGTSTP);
    wait_until(monitor, 'T');
    wait_until(worker, 'T');
    running.to_group(Signal::SIGCONT);
    running.to_group(Signal::SIGINT);
    let (status, shown) = running.end();
    assert!(is_unbroken(status), "{shown}");
    assert_eq!(read_json(&json)["totals"]["stalls"], 1, "{shown}");
}

/// While `idle` is among the workloads the process is stopped now and then, and passes all the
/// same.
#[test]
fn stalls_are_counted_and_excused() {
    let json = temporary("stalls.json");
    let run = soak()
        .args(["--workload", "idle,re-entrancy", "--load", "0.02"])
        .args(["--duration", "4s", "--json"])
        .arg(&json)
        .output()
        .expect("the binary was built for this test");
    let shown = String::from_utf8_lossy(&run.stdout);
    assert!(is_unbroken(run.status), "{shown}");
    let record = read_json(&json);
    let stalls = record["totals"]["stalls"].as_u64();
    assert!(stalls.is_some_and(|stalls| stalls >= 1), "{shown}");
    assert!(shown.contains("stalls: the process was stopped"), "{shown}");
    assert_ne!(record["outcome"], "fail");
}

/// A planted defect is the worker's verdict and the monitor's exit status.
#[test]
fn a_broken_promise_is_exit_status_one() {
    let json = temporary("broken.json");
    fs::write(&json, "x".repeat(1 << 20)).expect("it can be written");
    let path = json.to_str().expect("our own name is UTF-8");
    let running = Running::with(&["--duration", "20s", "--inject", "early", "--json", path]);
    let (status, shown) = running.end();
    assert_eq!(status.code(), Some(1), "{shown}");
    assert!(shown.contains("verdict: FAIL"), "{shown}");
    // Nothing of what was in the file is left.
    assert_eq!(read_json(&json)["outcome"], "fail");
}

/// What cannot be written is found before anything runs, and leaves nothing behind.
#[test]
fn an_unwritable_path_is_refused_before_the_run() {
    let fresh = temporary("fresh.json");
    let fresh = fresh.to_str().expect("our own name is UTF-8");
    for arguments in [
        ["--json", "/nowhere/at/all.json", "--report", "/dev/null"],
        ["--json", "/", "--report", "/dev/null"],
        ["--json", fresh, "--report", "/"],
    ] {
        let run = soak()
            .args(["--duration", "100ms"])
            .args(arguments)
            .output()
            .expect("the binary was built for this test");
        let told = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(run.stdout.is_empty(), "{arguments:?}");
        assert!(told.starts_with("soak: --"), "{arguments:?}: {told}");
        assert!(!Path::new(fresh).exists(), "{arguments:?}");
    }
}

/// A comparison takes a program of the other timer queue, and nothing else.
#[test]
fn a_comparison_with_the_wrong_program_is_refused() {
    let ours = env!("CARGO_BIN_EXE_soak");
    for (path, why) in [
        (ours, "this is also the soak of the"),
        ("/bin/true", "its --version says"),
        ("/nowhere/at/all", "No such file"),
    ] {
        let run = soak()
            .args(["--duration", "100ms"])
            .arg(format!("--compare={path}"))
            .output()
            .expect("the binary was built for this test");
        let told = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{path}: {told}");
        assert!(
            run.stdout.is_empty() && told.contains(why),
            "{path}: {told}"
        );
    }
}

/// What each run was on, is in its first lines; both are in the table.
#[test]
fn both_drivers_are_compared() {
    let run = soak()
        .args(["--duration", "500ms", "--load", "0.05"])
        .args(["--workload", "re-entrancy", "--compare=epoll"])
        .output()
        .expect("the binary was built for this test");
    let shown = String::from_utf8_lossy(&run.stdout);
    assert!(is_unbroken(run.status), "{shown}");
    let drivers = shown.lines().filter_map(|it| it.strip_prefix("driver: "));
    let drivers: Vec<_> = drivers.map(|it| it.split([',', ';']).next()).collect();
    assert_eq!(drivers, [Some("io_uring"), Some("epoll")], "{shown}");
    for part in [
        "run 2 of 2: epoll",
        " io_uring                 epoll     ratio",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

/// Nothing was broken. So short a run does not judge how late timers were, if any fired.
fn is_unbroken(status: ExitStatus) -> bool {
    matches!(status.code(), Some(0 | 3))
}

/// Longer than anything here takes on the slowest machine.
const HANGS: Duration = Duration::from_secs(60);
