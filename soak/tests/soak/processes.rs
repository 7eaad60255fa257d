//! What happens to processes happens to it.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use procfs::process::{Process, all_processes};

use super::{command, read_json, soak};

/// A soak that has begun, in a process group of its own.
struct Running {
    monitor: Child,
    stdout: BufReader<ChildStdout>,
    shown: String,
}

impl Running {
    /// Started with these arguments and little to do.
    fn with(arguments: &str) -> Self {
        let mut monitor = command("--workload re-entrancy --load 0.02")
            .args(arguments.split(' '))
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("the binary was built for this test");
        let stdout = monitor.stdout.take().expect("it is piped");
        let mut running = Running {
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
        let read = self.stdout.read_to_string(&mut self.shown);
        read.expect("it is UTF-8");
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
        let running = Running::with("--duration 60s");
        send(&running, signal);
        let (status, shown) = running.end();
        assert!(shown.contains("interrupted"), "{index}: {shown}");
        assert!(!shown.contains("verdict: FAIL"), "{index}: {shown}");
        assert!(matches!(status.code(), Some(0 | 3)), "{index}: {shown}");
    }
}

/// A worker that does not answer the first interrupt is ended by the second.
#[test]
fn the_second_interrupt_ends_it_at_once() {
    let running = Running::with("--duration 60s");
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

/// A worker that is not over long after its time is killed, which is a failure.
#[test]
fn a_worker_that_hangs_fails() {
    let running = Running::with("--duration 1s --grace 5s");
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
        // Nothing of what was in the file is left.
        fs::write(&json, "x".repeat(1 << 20)).expect("it can be written");
        let mut running = Running::with(&format!("--duration 60s --json {}", json.display()));
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
        let running = Running::with("--duration 60s");
        let worker = running.worker();
        if is_stopped {
            kill(worker, Signal::SIGSTOP).expect("it is there");
            wait_until(worker, 'T');
        }
        running.to_monitor(Signal::SIGKILL);
        wait_until(worker, 'Z');
    }
}

/// While `idle` is among the workloads the process is stopped now and then, and passes all the
/// same.
#[test]
fn stalls_are_counted_and_excused() {
    let json = temporary("stalls.json");
    let arguments = "--workload idle,re-entrancy --load 0.02 --duration 4s --json";
    let shown = soak(&format!("{arguments} {}", json.display())).unbroken();
    let record = read_json(&json);
    let stalls = record["totals"]["stalls"].as_u64();
    assert!(stalls.is_some_and(|stalls| stalls >= 1), "{shown}");
    assert!(shown.contains("stalls: the process was stopped"), "{shown}");
    assert_ne!(record["outcome"], "fail");
}

/// Longer than anything here takes on the slowest machine.
const HANGS: Duration = Duration::from_secs(60);
