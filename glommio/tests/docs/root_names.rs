//! The names at the root of the crate that 0.9.0 does not have are those of a row of
//! `docs/compatibility.md`: each can clash with a glob import.

use std::collections::BTreeSet;
use std::fs;

use crate::public_functions::sources;
use crate::root;

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect("it is there")
}

/// The identifier that `text` begins with.
fn identifier(text: &str) -> &str {
    let end = text.find(|it: char| it != '_' && !it.is_alphanumeric());
    &text[..end.unwrap_or(text.len())]
}

/// The names that a line of the listing has right behind `glommio::`.
fn of_the_original() -> BTreeSet<String> {
    let listing = read("compat/api/glommio-0.9.0.txt");
    let paths = listing
        .lines()
        .filter_map(|line| line.split_once(" glommio::"));
    let names = paths.map(|(_, path)| (identifier(path), path));
    names
        .filter(|(name, path)| !path[name.len()..].starts_with("::"))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// What `lib.rs` makes public, and the macros that are exported, without what is hidden.
fn of_this_crate() -> BTreeSet<String> {
    let sources = sources();
    let mut names = BTreeSet::new();
    for (path, text) in &sources {
        for item in text.split("#[macro_export]").skip(1) {
            let (attributes, rest) = item.split_once("macro_rules! ").expect("a macro");
            if !attributes.contains("doc(hidden)") && !identifier(rest).starts_with("__") {
                names.insert(format!("{}!", identifier(rest)));
            }
        }
        if path != "lib.rs" {
            continue;
        }
        let mut items = text.split('\n').peekable();
        let mut is_hidden = false;
        while let Some(line) = items.next() {
            if line.starts_with("#[") {
                is_hidden |= line.contains("doc(hidden)");
                continue;
            }
            if let Some(item) = line.strip_prefix("pub ").filter(|_| !is_hidden) {
                let mut item = item.to_owned();
                while item.starts_with("use ") && !item.ends_with(';') {
                    item += items.next().expect("a semicolon");
                }
                match item.split_once(' ').expect("a name") {
                    ("use", path) => names.extend(imported(path)),
                    (_, rest) => _ = names.insert(identifier(rest).to_owned()),
                }
            }
            is_hidden = false;
        }
    }
    // A macro, though imported like a function.
    if names.remove("select") {
        names.insert("select!".to_owned());
    }
    names
}

/// The names of `crate::task::{A, b::C};`.
fn imported(path: &str) -> Vec<String> {
    let path = path.trim_end_matches(';');
    let (_, list) = path.rsplit_once("::{").unwrap_or(("", path));
    let items = list.trim_end_matches('}').split(',').map(str::trim);
    let names = items.filter_map(|it| it.rsplit("::").next());
    names
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_page_on_compatibility_names_each_new_name_at_the_root() {
    let original = of_the_original();
    assert!(original.len() > 40, "the listing was read: {original:?}");
    let new: BTreeSet<String> = of_this_crate().difference(&original).cloned().collect();
    let page = read("docs/compatibility.md");
    let row = page
        .lines()
        .find_map(|line| line.strip_prefix("| **New names at the root**: "))
        .expect("the row");
    let (names, _) = row.split_once(" | ").expect("its second column");
    let features = ["debugging", "macros", "metrics", "simulation"];
    let told = names.split('`').skip(1).step_by(2).map(str::to_owned);
    let told: BTreeSet<String> = told.collect();
    let missing: Vec<_> = new.difference(&told).collect();
    let gone: Vec<_> = told
        .difference(&new)
        .filter(|it| !features.contains(&it.as_str()))
        .collect();
    assert!(missing.is_empty(), "not in the row: {missing:?}");
    assert!(gone.is_empty(), "in the row, and not at the root: {gone:?}");
}
