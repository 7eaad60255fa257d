//! The example that is tried first. `cargo test` builds it with the tests of the crate.

use std::path::PathBuf;
use std::process::{Command, Output};

/// The program, unless only one test was built.
fn hello() -> Option<PathBuf> {
    let test = std::env::current_exe().expect("a test has a path");
    let built = test.parent()?.parent()?.join("examples/hello");
    if !built.exists() {
        eprintln!("skipped: no `cargo build -p glommio --example hello` was made");
        return None;
    }
    Some(built)
}

fn texts(output: Output) -> (String, String) {
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr))
}

#[test]
fn it_ends_with_its_answer() {
    let Some(hello) = hello() else { return };
    let output = Command::new(hello).output().expect("it was built");
    let is_success = output.status.success();
    let (printed, errors) = texts(output);
    assert!(is_success, "{printed}{errors}");
    let last = printed.lines().last();
    assert_eq!(last, Some("the executor has ended and returned 42"));
    assert_eq!(errors, "");
}

/// A system that allows no ring is reported as a sentence, not as a Rust structure.
#[test]
fn it_says_what_to_change() {
    let Some(hello) = hello() else { return };
    let output = Command::new("sh")
        // Too few descriptors for an executor, and enough to start a program.
        .args(["-c", "ulimit -n 4 && exec \"$0\""])
        .arg(hello)
        .output()
        .expect("a shell");
    let code = output.status.code();
    let (_, errors) = texts(output);
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.starts_with("hello: "), "{errors}");
    assert!(errors.contains("ulimit -n"), "{errors}");
    assert!(!errors.contains(['{', '"']), "{errors}");
}
