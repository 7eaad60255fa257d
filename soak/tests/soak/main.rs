//! Runs the binary as a user does, and reads what it says.

mod processes;
#[cfg(feature = "simulation")]
mod simulate;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// How a run has ended.
#[derive(Debug)]
struct Run {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs with these arguments, separated by spaces.
fn soak(arguments: &str) -> Run {
    ended(command(arguments))
}

fn command(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soak"));
    command.args(arguments.split(' '));
    command
}

fn ended(mut command: Command) -> Run {
    let ended = command.output();
    let ended = ended.expect("the binary was built for this test");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Run {
        status: ended.status.code(),
        stdout: text(ended.stdout),
        stderr: text(ended.stderr),
    }
}

impl Run {
    /// What it has printed, of a run in which nothing was broken. So short a run does not judge how late timers were, if any
    /// fired.
    fn unbroken(self) -> String {
        assert!(matches!(self.status, Some(0 | 3)), "{self:?}");
        self.stdout
    }
}

fn read_json(path: &Path) -> Value {
    let json = fs::read(path).expect("it was asked for");
    serde_json::from_slice(&json).expect("it is JSON")
}

/// A short run of every workload holds every invariant, and shows each of them.
#[test]
fn two_seconds_end_with_a_verdict() {
    let shown = soak("--duration 2s --seed 42 --load 0.2").unbroken();
    for part in ["seed: 42", "in flight", "driver: io_uring, mode"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // Lateness takes a longer run, and memory after peaks may.
    let is_judged = |row: &&str| {
        let is_of_time = ["late, ", "ping "].iter().any(|of| row.starts_with(of));
        !is_of_time && !row.starts_with("memory back after peaks")
    };
    let rows = (shown.lines()).skip_while(|line| !line.starts_with("invariant "));
    let rows = (rows.skip(1)).take_while(|line| !line.starts_with("memory after warm-up"));
    let (exact, of_time): (Vec<_>, Vec<_>) = rows.partition(is_judged);
    assert!(exact.len() > 20, "{shown}");
    for row in exact {
        assert!(row.ends_with(" pass"), "{row}: {shown}");
    }
    let workloads = "message-queue reliable-udp re-entrancy churn idle greedy";
    for workload in workloads.split(' ') {
        let head = format!("late, {workload} p50");
        let row = of_time.iter().find(|row| row.starts_with(&head));
        let is_judged = |row: &&str| row.ends_with(" pass") || row.ends_with(" FAIL");
        assert!(!row.is_none_or(is_judged), "{head}: {shown}");
    }
    let verdict = shown.lines().last();
    let are_right = [Some("verdict: pass"), Some("verdict: inconclusive")];
    assert!(are_right.contains(&verdict), "{shown}");
}

/// The page and the pictures tell of the run whose numbers are in the JSON, and one workload alone says what it did not touch.
#[test]
fn a_run_leaves_a_page_pictures_and_json() {
    let dir = tempfile::tempdir().expect("there is room for one");
    let [page, json, pictures] =
        ["page.html", "run.json", "pictures"].map(|name| dir.path().join(name));
    let mut run = command("--duration 1500ms --seed 4711 --load 0.1 --workload re-entrancy");
    run.arg("--report").arg(&page).arg("--json").arg(&json);
    run.arg("--pictures").arg(&pictures);
    let shown = ended(run).unbroken();
    let mut lines = shown.lines();
    let row = lines.find(|line| line.starts_with("messages accounted for"));
    let row = row.expect("each promise has a row");
    assert!(row.ends_with("not exercised"), "{row}");

    let page = fs::read_to_string(page).expect("it was asked for");
    let record = read_json(&json);
    let kernel = &record["machine"]["kernel"];
    let kernel = kernel.as_str().expect("it has a kernel");
    for fact in ["<dd>4711</dd>", "re-entrancy", kernel] {
        assert!(page.contains(fact), "{fact}: {page}");
    }
    // Timers fired, but there were no messages that could have timed out.
    let totals = &record["totals"];
    assert!(totals["timers_fired"].as_u64() > Some(0), "{totals}");
    assert_eq!(totals["message_timeouts"].as_u64(), Some(0), "{totals}");
    assert!(pictures.join("soak-lateness.svg").is_file());
}

/// A run whose output is not read any more goes on to its end, and writes its files.
#[test]
fn readers_may_leave() {
    let directory = tempfile::tempdir().expect("there is room for one");
    let json = directory.path().join("record.json");
    let mut run = command("--duration 1s --load 0.1 --workload churn --json");
    let run = run.arg(&json).stdout(Stdio::piped()).spawn();
    let mut run = run.expect("the binary was built for this test");
    drop(run.stdout.take());
    let status = run.wait().expect("it is our child");
    assert!(matches!(status.code(), Some(0 | 3)), "{status}");
    let record = read_json(&json);
    assert_ne!(record["outcome"], "fail");
    let samples = record["samples"].as_array();
    assert!(samples.is_some_and(|it| !it.is_empty()), "{record}");
}

/// What makes no sense is refused before anything runs, and leaves nothing behind.
#[test]
fn nonsense_is_refused() {
    let directory = tempfile::tempdir().expect("there is room for one");
    let fresh = directory.path().join("fresh.json");
    let both = format!("--json {} --report /", fresh.display());
    let ours = env!("CARGO_BIN_EXE_soak");
    for (arguments, told) in [
        ("--duration soon", "error: invalid value"),
        ("--load 0", "error: invalid value"),
        ("--workload everything", "error: invalid value"),
        (
            "--json /nowhere/all.json --report /dev/null",
            "soak: --json",
        ),
        ("--json / --report /dev/null", "soak: --json"),
        ("--report /nowhere/page.html", "--report /nowhere/page.html"),
        (&both, "soak: --report"),
        (&format!("--compare={ours}"), "this is also the soak of the"),
        ("--compare=/bin/true", "its --version says"),
        ("--compare=/nowhere/at/all", "No such file"),
    ] {
        let run = soak(arguments);
        assert_eq!(run.status, Some(2), "{arguments}: {}", run.stderr);
        assert!(run.stderr.contains(told), "{arguments}: {run:?}");
        assert!(run.stdout.is_empty() && !fresh.exists(), "{arguments}");
    }
}

/// The first lines say what the rings are on this kernel.
#[test]
fn the_kernels_part_is_shown() {
    let mut run = command("--duration 500ms --load 0.05 --workload re-entrancy");
    run.env("GLOMMIO_RING", "plain");
    run.env("GLOMMIO_RING_WITHOUT", "absolute_wait,warp");
    let shown = ended(run).unbroken();
    let rings = shown.lines().find_map(|line| line.strip_prefix("driver: "));
    let rings = rings.unwrap_or_else(|| panic!("no such line: {shown}"));
    let parts: Vec<&str> = rings.split("; ").collect();
    assert_eq!(parts[0], "io_uring, mode plain", "{rings}");
    assert!(!rings.contains("refuses"), "none was tried: {rings}");
    let mut uses = parts.iter().filter(|part| part.starts_with("uses"));
    assert!(!uses.any(|it| it.contains("absolute_wait")), "{rings}");
    assert!(rings.contains("absolute_wait"), "{rings}");
    let complaint = "the library's log: warn: GLOMMIO_RING_WITHOUT: warp is not one of";
    assert!(shown.contains(complaint), "{shown}");
}

/// What each run was on, is in its first lines; both are in the table.
#[test]
fn both_drivers_are_compared() {
    let shown =
        soak("--duration 500ms --load 0.05 --workload re-entrancy --compare=epoll").unbroken();
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
