//! Runs workloads in simulations, and reads what was found.

use std::process::{Command, Output};

fn simulate(arguments: &[&str]) -> (bool, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(env!("CARGO_BIN_EXE_soak"))
        .args(["--simulate", "--duration", "1s", "--load", "0.005"])
        .args(arguments)
        .output()
        .expect("the binary was built for this test");
    let told = [stdout, stderr].map(|it| String::from_utf8(it).expect("text"));
    (status.success(), told.concat())
}

/// The line that has `word` in it.
fn line(told: &str, word: &str) -> String {
    let found = told.lines().find(|line| line.contains(word));
    found.expect(told).to_owned()
}

/// One seed with pauses and one without, twice.
#[test]
fn nothing_is_broken_and_each_seed_is_the_same_again() {
    let run = || {
        let (is_success, told) = simulate(&["--seeds", "2"]);
        assert!(is_success, "{told}");
        line(&told, "digest")
    };
    assert_eq!(run(), run());
}

#[test]
fn a_planted_defect_is_found_and_its_seed_finds_it_again() {
    for (defect, row) in [
        ("early", "nothing early"),
        ("leak", "live timers as modelled"),
    ] {
        let workload = ["--workload", "message-queue", "--inject", defect];
        let (is_success, told) = simulate(&[&workload[..], &["--seeds", "20"]].concat());
        assert!(!is_success && told.contains(row), "{told}");
        let repeat = line(&told, "fails; to repeat this");
        let seed = repeat.split_whitespace().nth(1).expect(&repeat).to_owned();
        let (_, again) = simulate(&[&workload[..], &["--seeds", "1", "--seed", &seed]].concat());
        assert_eq!(line(&again, row), line(&told, row));
    }
}

#[test]
fn what_is_about_real_time_is_refused() {
    let (is_success, told) = simulate(&["--workload", "idle"]);
    assert!(
        !is_success && told.contains("idle is not simulated"),
        "{told}"
    );
}
