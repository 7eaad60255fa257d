//! Measured figures are in generated blocks alone, which name the command and the commit.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::{pages, root};

/// Of what is measured, and seldom of what is set.
const UNITS: [&str; 6] = ["ns", "µs", "MB/s", "GB/s", "k/s", "%"];

/// What is set, by page: constants of the library, and bounds of the soak.
const SET: [(&str, &[&str]); 11] = [
    ("docs/architecture.md", &["20 µs"]),
    ("docs/benchmarks.md", &["10 µs"]),
    ("docs/compatibility.md", &["10 µs", "20 µs", "100 µs"]),
    ("docs/guide/drivers.md", &["20 µs"]),
    ("docs/guide/timers.md", &["64 µs"]),
    ("docs/operations/kernels.md", &["100 %"]),
    ("docs/operations/settings.md", &["100 µs"]),
    (
        "docs/scheduling.md",
        &["10 µs", "20 µs", "100 µs", "200 µs"],
    ),
    ("docs/soak.md", &["50 µs", "150 µs", "250 µs", "300 µs"]),
    ("docs/timing-wheel.md", &["1.05 ms"]),
    ("timelog/docs/benchmarks.md", &["100 µs", "20 %"]),
];

/// The text of a page without generated blocks and code.
fn prose(page: &str) -> String {
    let mut prose = String::new();
    let (mut is_block, mut is_code) = (false, false);
    for line in page.lines() {
        if line.starts_with("<!-- ") {
            is_block = line.ends_with(":begin -->") || is_block && !line.ends_with(":end -->");
        } else if line.starts_with("```") {
            is_code = !is_code;
        } else if !is_block && !is_code {
            let pieces = line.split('`').step_by(2);
            pieces.for_each(|piece| prose.push_str(piece));
            prose.push('\n');
        }
    }
    prose
}

/// Numbers with one of the units, or of milliseconds with a fraction.
fn figures(text: &str) -> BTreeSet<String> {
    let is_mark = |it: char| !it.is_alphanumeric() && it != '%';
    let words: Vec<&str> = text
        .split_whitespace()
        .map(|it| it.trim_matches(is_mark))
        .collect();
    let pairs = words.windows(2).filter(|pair| {
        let is_number = pair[0].parse::<f64>().is_ok();
        let is_measured = pair[1] == "ms" && pair[0].contains('.');
        is_number && (UNITS.contains(&pair[1]) || is_measured)
    });
    pairs.map(|pair| pair.join(" ")).collect()
}

#[test]
fn figures_that_were_measured_are_in_generated_blocks() {
    let mut faults = Vec::new();
    for page in pages() {
        let name = page.to_str().expect("pages have plain names");
        let text = fs::read_to_string(root().join(&page)).expect("it is there");
        let set = SET.iter().filter(|(page, _)| *page == name);
        let set: BTreeSet<String> = set
            .flat_map(|(_, set)| *set)
            .map(|it| (*it).to_owned())
            .collect();
        let found = figures(&prose(&text));
        let unknown = found.difference(&set);
        faults.extend(
            unknown.map(|it| {
                format!("{name}: {it}: put it into a block, or in this test if it is set")
            }),
        );
        let gone = set.difference(&found);
        faults.extend(gone.map(|it| format!("{name}: {it} is not there any more")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Where rows of other tables are measured again: on epoll, and with the other timer queue.
const AGAIN: [&str; 2] = ["## Delay queues", "# Drivers compared"];

/// The rows of tables that a bench has written, each with the heading above. A row "same, .." belongs to the one above it.
fn rows(page: &str) -> Vec<(&str, &str)> {
    let (mut rows, mut heading, mut is_table) = (Vec::new(), "", false);
    for line in page.lines() {
        let first = line
            .strip_prefix("| ")
            .and_then(|it| it.split(" | ").next());
        match first.map(str::trim) {
            None if line.starts_with("|--") => {}
            None => is_table = false,
            Some("row") => is_table = true,
            Some(row) if is_table && !row.starts_with("same") => rows.push((heading, row)),
            Some(_) => {}
        }
        if line.starts_with('#') {
            heading = line;
        }
    }
    rows
}

#[test]
fn a_row_stands_in_one_table() {
    let mut tables = BTreeMap::new();
    for page in pages() {
        let text = fs::read_to_string(root().join(&page)).expect("it is there");
        for (heading, row) in rows(&text) {
            // Those of the timer queues alone have short names below headings.
            let place = format!("{}, {heading}", page.display());
            let is_short = page.ends_with("timers.md");
            let row = if is_short {
                format!("{place}: {row}")
            } else {
                row.to_owned()
            };
            if !AGAIN.contains(&heading)
                && let Some(other) = tables.insert(row.clone(), place)
            {
                panic!("{row:?} is in {other}, too");
            }
        }
    }
    assert!(tables.len() > 150, "only {} rows were found", tables.len());
}

#[test]
fn a_figure_is_found() {
    let page = "It takes 6.25 µs, and `9 ns`.\n<!-- x:begin -->\n7 ns\n<!-- x:end -->\n```\n8 ns\n```\nA sleep of 1 ms is (0.5 ms) late, 3 %.";
    let found: Vec<String> = figures(&prose(page)).into_iter().collect();
    assert_eq!(found, ["0.5 ms", "3 %", "6.25 µs"]);
    let page = "## A\n\n| row | unit |\n|---|---|\n| b  | ns |\n| same, c | ns |\n\n| way | x |\n|---|---|\n| d | e |\n";
    assert_eq!(rows(page), [("## A", "b")]);
}
