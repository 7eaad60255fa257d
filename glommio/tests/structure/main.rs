//! The layers of the source: no module imports from a layer above its own, no imports form a
//! circle, and each file with unsafe code says so at its head.
//!
//! The layers are those of the table in `docs/architecture.md`. Imports are read from the source as
//! text: `use` items and paths that begin with `crate`, `self` or `super`. What a module re-exports
//! counts as an import from the module where it is defined. A child may use what its ancestors
//! define, and they may use their children, since they are one idea in several files; siblings must
//! not form circles.

mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use sources::{Crate, Module};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a member of a workspace")
        .to_owned()
}

/// The layer of each module at the top of the crate, from the table in the document.
fn layers() -> BTreeMap<String, u32> {
    let text = fs::read_to_string(workspace().join("docs/architecture.md"))
        .expect("the document is there");
    let mut layers = BTreeMap::new();
    for line in text.lines() {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, layer, names, ..] = cells[..] else {
            continue;
        };
        let Ok(layer) = layer.parse() else { continue };
        for name in names.split('`').skip(1).step_by(2) {
            let name = name.trim_end_matches('/').trim_end_matches(".rs");
            assert!(
                layers.insert(name.to_owned(), layer).is_none(),
                "{name} has two layers"
            );
        }
    }
    assert!(layers.len() > 10, "the table was not found");
    layers
}

/// Which of `nodes` can be reached from each other: one circle for each group, by name.
fn circles(edges: &BTreeSet<(String, String)>) -> Vec<Vec<String>> {
    let nodes: BTreeSet<_> = edges.iter().flat_map(|(a, b)| [a, b]).collect();
    let reach = |from: &String| {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            for (_, to) in edges
                .range((node.clone(), String::new())..)
                .take_while(|(a, _)| a == node)
            {
                if seen.insert(to) {
                    open.push(to);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<_, _> = nodes.iter().map(|&node| (node, reach(node))).collect();
    let mut found = BTreeSet::new();
    for &node in &nodes {
        let circle: Vec<_> = (reached[node].iter())
            .filter(|&&other| reached[other].contains(node))
            .map(|&other| other.clone())
            .collect();
        if circle.contains(node) {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

/// The imports between the children of each module: for each parent the pairs of its children.
fn between_siblings(source: &Crate) -> BTreeMap<Module, BTreeSet<(String, String)>> {
    let mut edges: BTreeMap<Module, BTreeSet<_>> = BTreeMap::new();
    for (from, to) in source.imports() {
        let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        if shared < from.len() && shared < to.len() {
            let pair = (from[shared].clone(), to[shared].clone());
            edges
                .entry(from[..shared].to_vec())
                .or_default()
                .insert(pair);
        }
    }
    edges
}

/// The circles between the children of a module, and the imports that they consist of.
fn circles_below(root: &Path) -> Vec<String> {
    let source = Crate::read(root);
    let mut found = Vec::new();
    for (parent, edges) in between_siblings(&source) {
        for circle in circles(&edges) {
            let is_part =
                |(from, to): &&(String, String)| circle.contains(from) && circle.contains(to);
            let imports: Vec<_> = edges.iter().filter(is_part).collect();
            found.push(format!(
                "{}, `{}`: {imports:?}",
                root.display(),
                parent.join("::")
            ));
        }
    }
    found
}

#[test]
fn no_module_imports_from_a_layer_above() {
    let source = Crate::read(&workspace().join("glommio/src"));
    let layers = layers();
    let mut upward = BTreeSet::new();
    for (from, to) in source.imports() {
        // The face of the crate, and what it imports.
        let (Some(from_top), Some(to_top)) = (from.first(), to.first()) else {
            continue;
        };
        let layer = |name: &String| {
            *layers
                .get(name)
                .unwrap_or_else(|| panic!("`{name}` has no layer in docs/architecture.md"))
        };
        if layer(from_top) < layer(to_top) {
            upward.insert(format!("{} -> {}", from.join("::"), to.join("::")));
        }
    }
    assert!(upward.is_empty(), "imports from a layer above: {upward:#?}");
}

/// `crate::Name` is what users import. Inside, the module that defines a name is named, so that
/// imports can be seen. The controllers are written as a user would write them.
#[test]
fn no_module_imports_from_the_face() {
    let source = Crate::read(&workspace().join("glommio/src"));
    let of_face: Vec<_> = (source.imports_of_face().into_iter())
        .filter(|(module, _)| module.first().is_none_or(|top| top != "controllers"))
        .map(|(module, name)| format!("{}: crate::{name}", module.join("::")))
        .collect();
    assert!(of_face.is_empty(), "{of_face:#?}");
}

#[test]
fn no_imports_form_a_circle() {
    let roots = [
        "glommio/src",
        "soak/src",
        "benches/src",
        "benches/benches/timers",
        "support/src",
        "timelog/src",
    ];
    let found = roots.map(|root| circles_below(&workspace().join(root)));
    assert!(
        found.iter().all(Vec::is_empty),
        "imports form circles: {found:#?}"
    );
}

/// What only tools need stays out of the programs that use the library.
#[test]
fn the_library_does_not_depend_on_the_tools() {
    let manifest = fs::read_to_string(workspace().join("glommio/Cargo.toml")).expect("it is there");
    for member in ["support", "soak", "benches", "timelog", "examples"] {
        let is_named = (manifest.lines())
            .filter_map(|line| line.split(['.', ' ', '=']).next())
            .any(|name| name == member);
        assert!(!is_named, "{member}");
    }
}

/// The document follows a deadline and a byte through the source: "1. `file.rs:12` `function`". A
/// line may be off by a little, so that not each change of a file is one of the document.
#[test]
fn the_functions_that_the_document_follows_are_there() {
    const OFF_MAX: usize = 40;
    let text = fs::read_to_string(workspace().join("docs/architecture.md"))
        .expect("the document is there");
    let mut followed = 0;
    for line in text.lines() {
        let parts: Vec<_> = line.split('`').collect();
        let [number, place, " ", function, ..] = parts[..] else {
            continue;
        };
        let Some((file, at)) = place.split_once(".rs:") else {
            continue;
        };
        assert!(number.ends_with(". "), "{line}");
        let at: usize = at.parse().expect("a line");
        let source = fs::read_to_string(workspace().join(format!("glommio/src/{file}.rs")))
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        let definition = [format!("fn {function}("), format!("fn {function}<")];
        let is_there = (source.lines().enumerate())
            .filter(|(_, line)| definition.iter().any(|it| line.contains(it)))
            .any(|(index, _)| (index + 1).abs_diff(at) <= OFF_MAX);
        assert!(is_there, "no such function near there: {line}");
        followed += 1;
    }
    assert!(followed > 30, "the lists were not found");
}

/// The lint is denied in `lib.rs`; these lines are the list of the files that may.
#[test]
fn each_file_with_unsafe_code_says_so_at_its_head() {
    let allow = "#![allow(unsafe_code)]";
    for (path, text) in sources::files(&workspace().join("glommio/src")) {
        let code = sources::without_comments(&text);
        let is_unsafe = ["unsafe {", "unsafe fn ", "unsafe impl", "unsafe trait "]
            .iter()
            .any(|word| code.contains(word));
        let says_so = text.contains(allow) || text.contains("#[allow(unsafe_code, reason = ");
        assert!(
            is_unsafe == says_so || (says_so && path.ends_with("tests/mod.rs")),
            "{}: unsafe code {is_unsafe}, allowed {says_so}",
            path.display(),
        );
    }
}

#[test]
fn circles_are_found() {
    let edges = |pairs: &[(&str, &str)]| {
        (pairs.iter())
            .map(|&(a, b)| (a.to_owned(), b.to_owned()))
            .collect()
    };
    assert!(circles(&edges(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    let found = circles(&edges(&[("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")]));
    assert_eq!(found, [["a", "b", "c"]]);
}

#[test]
fn imports_are_read() {
    let text = "
        use crate::a::{self, B, c::{D, e as f}}; // use crate::no;
        pub(crate) use super::g::*;
        /* use crate::never; */
        fn h() -> crate::i::J { \"use crate::text;\".into() }
        macro_rules! k { () => { $crate::l::m() } }
    ";
    let mut paths: Vec<_> = sources::paths(text)
        .into_iter()
        .map(|path| path.join("::"))
        .collect();
    paths.sort();
    let expected = [
        "crate::a",
        "crate::a::B",
        "crate::a::c::D",
        "crate::a::c::e",
        "crate::i::J",
        "crate::l::m",
        "super::g::*",
    ];
    assert_eq!(paths, expected);
}
