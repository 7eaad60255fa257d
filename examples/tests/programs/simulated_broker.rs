//! The broker in its simulation: nothing is lost, and what leaves the sync out is found.

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> (bool, String) {
    let Output { status, stdout, .. } = Command::new(env!("CARGO_BIN_EXE_simulated_broker"))
        .args(arguments)
        .env_remove("GLOMMIO_SEED")
        .output()
        .expect("the binary was built for this test");
    let printed = String::from_utf8(stdout).expect("text");
    (status.success(), printed)
}

#[test]
fn nothing_that_was_confirmed_is_lost() {
    let (is_success, printed) = run(&["--seeds", "10", "--messages", "100"]);
    assert!(is_success, "{printed}");
    let expected = "10 seeds: 3000 messages confirmed, ";
    assert!(printed.starts_with(expected), "{printed}");
    assert!(printed.trim_end().ends_with("none lost"), "{printed}");
}

#[test]
fn a_broker_that_leaves_the_sync_out_is_found_and_its_seed_finds_it_again() {
    let (is_success, printed) = run(&["--seeds", "20", "--without-sync"]);
    assert!(!is_success, "{printed}");
    let seed = printed.trim_end().rsplit_once("GLOMMIO_SEED=");
    let seed = seed.expect("the seed is the last that is printed").1;
    let again = run(&["--seed", seed, "--seeds", "1", "--without-sync"]);
    assert_eq!(again, (false, printed));
}

#[test]
fn the_power_cuts_that_suffice_are_told() {
    let (is_success, printed) = run(&["--without-sync", "--minimise"]);
    assert!(!is_success, "{printed}");
    let (before, after) = printed.rsplit_once(" faults suffice").expect(&printed);
    let (left, of) = before
        .rsplit_once('\n')
        .expect("lines")
        .1
        .split_once(" of ")
        .expect(&printed);
    let numbers = (left.parse::<u32>(), of.parse::<u32>());
    let (Ok(left), Ok(of)) = numbers else {
        panic!("{printed}");
    };
    assert!(0 < left && left < of, "{left} of {of}");
    assert_eq!(after.matches("power cut of broker").count(), left as usize);
}
