//! The table of system calls that may be missing has those that a test denies.

use std::fs;

use crate::root;

#[test]
fn the_calls_that_are_denied_are_those_of_the_table() {
    let read = |path| fs::read_to_string(root().join(path)).expect("it is there");
    let test = read("glommio/tests/executor/missing_calls.rs");
    let list = test.split("MAY_BE_MISSING").nth(1).expect("it has a list");
    let list = list.split("];").next().expect("it ends");
    let denied = list.split("libc::SYS_").skip(1);
    let denied: Vec<&str> = denied.filter_map(|it| it.split(',').next()).collect();
    assert!(denied.len() > 5, "{list}");

    let page = read("docs/operations/kernels.md");
    let mut sections = page.split("\n## ");
    let section = sections.find(|it| it.starts_with("System calls"));
    let section = section.expect("the page has it");
    let rows: Vec<&str> = section.lines().filter(|it| it.starts_with("| `")).collect();
    for call in denied {
        let is_there = rows.iter().any(|row| row.contains(&format!("`{call}`")));
        assert!(is_there, "{call} has no row");
    }
}
