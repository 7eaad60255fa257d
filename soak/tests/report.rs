//! Runs the binary for a second and reads the page about it.

use std::fs;
use std::process::Command;

/// The page and the pictures tell of the run whose numbers are in the JSON.
#[test]
fn a_run_leaves_a_page_and_pictures() {
    let dir = tempfile::tempdir().expect("there is room for one");
    let [page, json, pictures] =
        ["page.html", "run.json", "pictures"].map(|name| dir.path().join(name));
    let run = Command::new(env!("CARGO_BIN_EXE_soak"))
        .args(["--duration", "1500ms", "--seed", "4711", "--load", "0.1"])
        .args(["--workload", "re-entrancy", "--report"])
        .arg(&page)
        .arg("--json")
        .arg(&json)
        .arg("--pictures")
        .arg(&pictures)
        .output()
        .expect("the binary was built for this test");
    let told = String::from_utf8_lossy(&run.stderr);
    // So short a run does not judge how late timers were, if any fired.
    assert!(matches!(run.status.code(), Some(0 | 3)), "{told}");

    let page = fs::read_to_string(page).expect("it was asked for");
    for fact in ["<dd>4711</dd>", "re-entrancy"] {
        assert!(page.contains(fact), "{page}");
    }
    let json = fs::read(json).expect("it was asked for");
    let record: serde_json::Value = serde_json::from_slice(&json).expect("it is JSON");
    let kernel = record["machine"]["kernel"]
        .as_str()
        .expect("it has a kernel");
    assert!(page.contains(kernel), "{kernel}");
    // Timers fired, but there were no messages that could have timed out.
    let totals = &record["totals"];
    assert!(totals["timers_fired"].as_u64() > Some(0), "{totals}");
    assert_eq!(totals["message_timeouts"].as_u64(), Some(0), "{totals}");
    assert!(pictures.join("soak-lateness.svg").is_file());
}

/// A page that cannot be written is an error that names it.
#[test]
fn a_page_that_goes_nowhere_is_an_error() {
    let run = Command::new(env!("CARGO_BIN_EXE_soak"))
        .args(["--duration", "200ms", "--load", "0.1"])
        .args(["--workload", "re-entrancy"])
        .args(["--report", "/nowhere/page.html"])
        .output()
        .expect("the binary was built for this test");
    assert!(!run.status.success());
    let told = String::from_utf8_lossy(&run.stderr);
    assert!(told.contains("--report /nowhere/page.html"), "{told}");
}
