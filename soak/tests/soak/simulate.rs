//! Runs workloads in simulations.

use super::{Run, soak};

fn simulate(arguments: &str) -> Run {
    soak(&format!(
        "--simulate --duration 1s --load 0.005 {arguments}"
    ))
}

/// One seed with pauses and one without, twice.
#[test]
fn nothing_is_broken_and_each_seed_is_the_same_again() {
    let run = || {
        let shown = simulate("--seeds 2").unbroken();
        let digest = shown.lines().find(|line| line.contains("digest"));
        digest.expect(&shown).to_owned()
    };
    assert_eq!(run(), run());
}

#[test]
fn what_is_about_real_time_is_refused() {
    let run = simulate("--workload idle");
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(run.stderr.contains("idle is not simulated"), "{run:?}");
}
