//! The examples that end by themselves.

use crate::servers::run;

/// All primes are counted, however many workers there are.
#[test]
fn work_is_shared_out() {
    let arguments = ["--workers", "3", "--below", "100000"];
    let (is_success, printed, _) = run("work_to_executors", &arguments);
    assert!(
        is_success && printed.starts_with("9592 primes "),
        "{printed}"
    );
    let counts = printed.lines().filter_map(|line| {
        let count = line.split(" did ").nth(1)?.strip_suffix(" pieces")?;
        count.parse::<u64>().ok()
    });
    assert_eq!(counts.sum::<u64>(), 10, "{printed}");
}

/// A stall is reported where the program's user sees it.
#[test]
fn shards_report_a_stall() {
    let (is_success, printed, errors) = run("shards", &["--stall", "--shards", "1"]);
    assert!(is_success && printed.contains("requests ran"), "{printed}");
    assert!(
        errors.contains("WARN") && errors.contains("default"),
        "{errors}"
    );
}

#[cfg(feature = "simulation")]
#[test]
fn a_broker_without_syncs_is_found_and_its_seed_finds_it_again() {
    let (is_success, printed, _) = run("simulated_broker", &["--seeds", "20", "--without-sync"]);
    assert!(!is_success, "{printed}");
    let seed = printed.trim_end().rsplit_once(".seed(");
    let seed = seed.expect("the seed is the last that is printed").1;
    let seed = seed.trim_end_matches(')');
    let one = ["--seed", seed, "--seeds", "1", "--without-sync"];
    let (is_success, again, _) = run("simulated_broker", &one);
    assert_eq!((is_success, &again), (false, &printed));
    let (_, printed, _) = run("simulated_broker", &[&one[..], &["--minimise"]].concat());
    let (before, after) = printed.rsplit_once(" faults suffice").expect(&printed);
    let line = before
        .lines()
        .last()
        .and_then(|line| line.split_once(" of "));
    let (left, of) = line.expect(&printed);
    let numbers = (left.parse::<usize>(), of.parse::<usize>());
    let (Ok(left), Ok(of)) = numbers else {
        panic!("{printed}");
    };
    assert!(0 < left && left < of, "{left} of {of}");
    assert_eq!(after.matches("power cut of broker").count(), left);
}
