//! Runs the binary for two seconds and reads its verdict.

use std::process::Command;

/// A short run of every workload holds every invariant, and shows each of them.
#[test]
fn two_seconds_end_with_a_verdict() {
    let run = Command::new(env!("CARGO_BIN_EXE_soak"))
        .args([
            "--duration",
            "2s",
            "--seed",
            "42",
            "--load",
            "0.2",
            "--clients",
            "1",
        ])
        .output()
        .expect("the binary was built for this test");
    let shown = String::from_utf8_lossy(&run.stdout);
    let told = format!("{shown}\n{}", String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{told}");
    assert!(shown.contains("seed: 42"), "{told}");
    assert!(
        shown.contains("in flight") && shown.contains("RSS"),
        "{told}"
    );
    for invariant in [
        "nothing early",
        "nothing lost",
        "nothing fired twice",
        "cancelled stays silent",
        "stale cancels hit nothing",
        "messages accounted for",
        "socket timeouts",
        "live timers back to zero",
        "lateness p99.9",
        "lateness max",
        "memory after warm-up",
        "descriptors constant",
        "executors ended well",
    ] {
        let row = shown.lines().find(|line| line.starts_with(invariant));
        assert!(
            row.is_some_and(|row| row.ends_with(" pass")),
            "{invariant}: {told}"
        );
    }
    assert!(shown.ends_with("verdict: pass\n"), "{told}");
}

/// One workload alone says which invariants it did not touch.
#[test]
fn a_single_workload_claims_nothing_about_the_others() {
    let run = Command::new(env!("CARGO_BIN_EXE_soak"))
        .args([
            "--duration",
            "1s",
            "--load",
            "0.1",
            "--workload",
            "re-entrancy",
        ])
        .output()
        .expect("the binary was built for this test");
    let shown = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{shown}");
    let row = shown
        .lines()
        .find(|line| line.starts_with("messages accounted for"));
    assert!(
        row.is_some_and(|row| row.ends_with("not exercised")),
        "{shown}"
    );
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
