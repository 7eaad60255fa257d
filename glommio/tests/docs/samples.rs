//! Rust code in pages is compiled: with the doc tests, or where it was copied from.

use std::fs;

use crate::{pages, root};

/// The sources with doc tests of pages.
const TESTED_IN: [&str; 3] = [
    "glommio/src/book.rs",
    "glommio-quic/src/lib.rs",
    "examples/src/lib.rs",
];

/// The samples of a page that no doc test compiles, each with the path in the text above it.
fn ignored(page: &str) -> Vec<(Option<&str>, Vec<&str>)> {
    let mut samples = Vec::new();
    let mut source = None;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("```rust") {
            let code = lines.by_ref().take_while(|it| *it != "```").collect();
            if line.contains("ignore") {
                samples.push((source, code));
            }
        } else if line.starts_with('#') {
            source = None;
        } else if let Some(path) = line
            .split('`')
            .skip(1)
            .step_by(2)
            .find(|it| it.ends_with(".rs"))
        {
            source = Some(path);
        }
    }
    samples
}

/// The first line of a sample that `source` does not have after those before. A line `// ..` is for lines left out.
fn missing<'a>(sample: &[&'a str], source: &str) -> Option<&'a str> {
    let mut rest = source.lines().map(str::trim);
    let mut copied = sample
        .iter()
        .filter(|it| !it.is_empty() && it.trim() != "// ..");
    copied
        .find(|line| !rest.any(|it| it == line.trim()))
        .copied()
}

#[test]
fn samples_are_compiled() {
    let read = |path: &str| {
        fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let tested = TESTED_IN.map(read).concat();
    let (mut faults, mut count) = (Vec::new(), 0);
    for page in pages() {
        let page = page.to_str().expect("pages have plain names");
        let text = read(page);
        for (source, sample) in ignored(&text) {
            count += 1;
            let fault = match source {
                None => Some("no source is named above this"),
                Some(source) => missing(&sample, &read(source)),
            };
            faults.extend(fault.map(|it| format!("{page}: {it}, in {sample:?}")));
        }
        if text.contains("\n```rust") && !tested.contains(page) {
            faults.push(format!("{page}: no doc tests have it"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 2, "only {count} samples were found");
}

#[test]
fn a_line_that_is_not_in_the_source_is_found() {
    let page = "In `a.rs`:\n```rust,ignore\nlet a = 1;\n// ..\nlet b = 2;\n```\n# A\n```rust,ignore\nf()\n```";
    let samples = ignored(page);
    assert_eq!(samples[0].0, Some("a.rs"));
    assert_eq!(samples[1], (None, vec!["f()"]));
    let sample = &samples[0].1;
    assert_eq!(missing(sample, "  let a = 1;\nf();\n  let b = 2;"), None);
    assert_eq!(
        missing(sample, "let b = 2;\nlet a = 1;"),
        Some("let b = 2;")
    );
}
