//! Runs the binary for two seconds and reads its verdict.

use std::fs;
use std::process::{Command, ExitStatus, Stdio};

/// A short run of every workload holds every invariant, and shows each of them.
#[test]
fn two_seconds_end_with_a_verdict() {
    let run = Command::new(env!("CARGO_BIN_EXE_soak"))
        .args(["--duration", "2s", "--seed", "42"])
        .args(["--load", "0.2", "--clients", "1"])
        .output()
        .expect("the binary was built for this test");
    let shown = String::from_utf8_lossy(&run.stdout);
    let told = format!("{shown}\n{}", String::from_utf8_lossy(&run.stderr));
    assert!(is_unbroken(run.status), "{told}");
    assert!(shown.contains("seed: 42"), "{told}");
    assert!(
        shown.contains("in flight") && shown.contains("driver: io_uring, mode"),
        "{told}"
    );
    // Lateness takes a longer run, and memory after peaks may.
    let is_judged = |row: &&str| {
        let is_of_time = ["late, ", "ping "].iter().any(|of| row.starts_with(of));
        !is_of_time && !row.starts_with("memory back after peaks")
    };
    let rows = shown
        .lines()
        .skip_while(|line| !line.starts_with("invariant "));
    let rows = rows
        .skip(1)
        .take_while(|line| !line.starts_with("memory after warm-up"));
    let rows: Vec<_> = rows.filter(is_judged).collect();
    assert!(rows.len() > 20, "{told}");
    for row in rows {
        assert!(row.ends_with(" pass"), "{row}: {told}");
    }
    for workload in [
        "message-queue",
        "reliable-udp",
        "re-entrancy",
        "churn",
        "idle",
        "greedy",
    ] {
        let row = format!("late, {workload} p50");
        let row = shown.lines().find(|line| line.starts_with(&row));
        let is_judged = |row: &str| row.ends_with(" pass") || row.ends_with(" FAIL");
        assert!(
            row.is_some_and(|row| !is_judged(row)),
            "{workload} in two seconds: {told}"
        );
    }
    let verdict = shown.lines().last();
    assert!(
        matches!(verdict, Some("verdict: pass" | "verdict: inconclusive")),
        "{told}"
    );
}

/// One workload alone says which invariants it did not touch.
#[test]
fn a_single_workload_claims_nothing_about_the_others() {
    let run = Command::new(env!("CARGO_BIN_EXE_soak"))
        .args(["--duration", "1s", "--load", "0.1"])
        .args(["--workload", "re-entrancy"])
        .output()
        .expect("the binary was built for this test");
    let shown = String::from_utf8_lossy(&run.stdout);
    assert!(is_unbroken(run.status), "{shown}");
    let row = shown
        .lines()
        .find(|line| line.starts_with("messages accounted for"));
    assert!(
        row.is_some_and(|row| row.ends_with("not exercised")),
        "{shown}"
    );
}

/// A run whose output is not read any more goes on to its end, and writes its files.
#[test]
fn readers_may_leave() {
    let directory = tempfile::tempdir().expect("there is room for one");
    let json = directory.path().join("record.json");
    let mut run = Command::new(env!("CARGO_BIN_EXE_soak"))
        .args(["--duration", "1s", "--load", "0.1", "--workload", "churn"])
        .arg("--json")
        .arg(&json)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary was built for this test");
    drop(run.stdout.take());
    let status = run.wait().expect("it is our child");
    assert!(is_unbroken(status), "{status}");
    let record = fs::read_to_string(&json).expect("it was written");
    assert!(!record.contains(r#""outcome":"fail""#), "{record}");
    assert!(record.contains(r#""samples":[{"#), "{record}");
}

/// A wrong command line is refused before anything starts.
#[test]
fn nonsense_is_refused() {
    for arguments in [
        ["--duration", "soon"],
        ["--load", "0"],
        ["--workload", "everything"],
    ] {
        let run = Command::new(env!("CARGO_BIN_EXE_soak"))
            .args(arguments)
            .output()
            .expect("the binary was built for this test");
        assert_eq!(run.status.code(), Some(2), "{arguments:?}");
        assert!(run.stdout.is_empty(), "{arguments:?}");
    }
}

/// The first lines say what the rings are on this kernel.
#[test]
fn the_kernels_part_is_shown() {
    let run = Command::new(env!("CARGO_BIN_EXE_soak"))
        .args(["--duration", "500ms", "--load", "0.05"])
        .args(["--workload", "re-entrancy"])
        .env("GLOMMIO_RING", "plain")
        .env("GLOMMIO_RING_WITHOUT", "absolute_wait,warp")
        .output()
        .expect("the binary was built for this test");
    let shown = String::from_utf8_lossy(&run.stdout);
    let rings = shown.lines().find(|line| line.starts_with("driver: "));
    let rings = rings.unwrap_or_else(|| panic!("no such line: {shown}"));
    let parts: Vec<&str> = rings["driver: ".len()..].split("; ").collect();
    assert_eq!(parts[0], "io_uring, mode plain", "{rings}");
    assert!(!rings.contains("refuses"), "none was tried: {rings}");
    let part = |start| parts.iter().find(|part| part.starts_with(start));
    assert!(
        part("uses").is_none_or(|part| !part.contains("absolute_wait")),
        "{rings}"
    );
    assert!(rings.contains("absolute_wait"), "{rings}");
    let complaint = "the library's log: warn: GLOMMIO_RING_WITHOUT: warp is not one of";
    assert!(shown.contains(complaint), "{shown}");
}

/// Nothing was broken. So short a run does not judge how late timers were, if any fired.
fn is_unbroken(status: ExitStatus) -> bool {
    matches!(status.code(), Some(0 | 3))
}
