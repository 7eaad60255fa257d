//! The layers of the source: no module imports from a layer above its own, no imports form a
//! circle, and each file with unsafe code says so at its head.
//!
//! The layers are those of the table in `docs/architecture.md`. Imports are read from the tokens of
//! the source: `use` items and paths that begin with `crate`, `self` or `super`. What a module re-exports
//! counts as an import from the module where it is defined, and is none of its own. Circles are looked
//! for between files, of which a folder's `mod.rs` is one like any other, and between the children of
//! each folder with all that is below them.

mod lines;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use sources::Crate;

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

/// The circles between files, and those between the children of each module with what is below
/// them, by the names of what they consist of.
fn circles_below(root: &Path) -> BTreeSet<Vec<String>> {
    // The face of the crate publishes the rest.
    let imports: Vec<_> = (Crate::read(root).imports().into_iter())
        .filter(|(from, to)| !from.is_empty() && !to.is_empty())
        .collect();
    let files = (imports.iter())
        .map(|(from, to)| (from.join("::"), to.join("::")))
        .collect();
    let mut siblings: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (from, to) in &imports {
        let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        if shared < from.len() && shared < to.len() {
            let [from, to] = [from, to].map(|it| it[..=shared].join("::"));
            let parent: &mut BTreeSet<_> = siblings.entry(shared).or_default();
            parent.insert((from, to));
        }
    }
    let graphs = siblings.values().chain([&files]);
    graphs.flat_map(circles).collect()
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
        "staged-wheel/src",
        "simulated-kernel/src",
        "soak/src",
        "benches/src",
        "benches/benches/timers",
        "benches/benches/udp",
        "support/src",
        "timelog/src",
    ];
    let found: Vec<_> = (roots.iter())
        .flat_map(|root| circles_below(&workspace().join(root)))
        .collect();
    assert!(found.is_empty(), "imports form circles: {found:#?}");
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

/// The document follows a write, a read, a connect, a wake and a message: "1. `file.rs` `function`".
#[test]
fn the_functions_that_the_document_follows_are_there() {
    let text = fs::read_to_string(workspace().join("docs/architecture.md"))
        .expect("the document is there");
    let mut followed = 0;
    for line in text.lines() {
        let parts: Vec<_> = line.split('`').collect();
        let [number, file, " ", function, ..] = parts[..] else {
            continue;
        };
        if !number.ends_with(". ") || !file.ends_with(".rs") {
            continue;
        }
        // That of another crate begins with its folder.
        let source = fs::read_to_string(workspace().join("glommio/src").join(file))
            .or_else(|_| fs::read_to_string(workspace().join(file)))
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        let definition = [format!("fn {function}("), format!("fn {function}<")];
        let is_there = definition.iter().any(|it| source.contains(it));
        assert!(is_there, "no such function there: {line}");
        followed += 1;
    }
    assert!(followed > 45, "the lists were not found");
}

/// The lint is denied in `lib.rs`; these lines are the list of the files that may.
#[test]
fn each_file_with_unsafe_code_says_so_at_its_head() {
    let allow = "#![allow(unsafe_code)]";
    let crates = ["glommio/src", "staged-wheel/src"];
    for (path, text) in crates
        .iter()
        .flat_map(|root| sources::files(&workspace().join(root)))
    {
        let is_unsafe = sources::is_unsafe(&sources::tokens(&text));
        let says_so = text.contains(allow) || text.contains("#[allow(unsafe_code, reason = ");
        assert!(
            is_unsafe == says_so || (says_so && path.ends_with("tests/mod.rs")),
            "{}: unsafe code {is_unsafe}, allowed {says_so}",
            path.display(),
        );
    }
}

/// Code that reads the clock says which one: that of the executor, or that of the system.
#[test]
fn one_file_reads_the_clock() {
    let files = sources::files(&workspace().join("glommio/src")).into_iter();
    let readers: Vec<_> = files
        .filter(|(path, text)| {
            !sources::is_test(path) && sources::reads_clock(&sources::tokens(text))
        })
        .map(|(path, _)| path)
        .collect();
    assert_eq!(readers, [Path::new("clock.rs")]);
}

/// The folders of the doors, and of what stands behind them in a simulation.
const DOORS: [&str; 4] = ["ring", "sys", "simulated", "simulation"];

/// Elsewhere they are for what is published with the feature, for parts of the reactor and the clock that
/// ordinary builds do not have, and nowhere for a call.
#[test]
fn few_places_know_of_the_feature_simulation() {
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for (path, text) in sources::files(&workspace().join("glommio/src")) {
        let is_of_door = DOORS.iter().any(|door| path.starts_with(door));
        let found = if is_of_door {
            &mut inside
        } else {
            &mut outside
        };
        let code = (text.lines()).filter(|line| !line.trim_start().starts_with("//"));
        let marked = code.filter(|line| line.contains("cfg") && line.contains("\"simulation\""));
        found.extend(marked.map(|line| format!("{}: {}", path.display(), line.trim())));
    }
    assert!(inside.len() <= 14, "{}: {inside:#?}", inside.len());
    assert!(outside.len() <= 24, "{}: {outside:#?}", outside.len());
}

#[test]
fn only_the_doors_lead_into_a_simulation() {
    let imports = Crate::read(&workspace().join("glommio/src")).imports();
    let past_the_doors: Vec<_> = (imports.iter())
        .filter(|(from, to)| {
            let is_of_door = from.first().is_none_or(|top| DOORS.contains(&top.as_str()));
            to.first().is_some_and(|top| top == "simulated") && !is_of_door
        })
        .collect();
    assert!(past_the_doors.is_empty(), "{past_the_doors:#?}");
}

#[test]
fn readings_of_the_clock_are_found() {
    let reads = |text| sources::reads_clock(&sources::tokens(text));
    assert!(reads(
        "fn f() { let x = Some(|| std::time::Instant::now()); }"
    ));
    assert!(reads("fn f() { x.then(Instant::now) }"));
    assert!(reads("fn f() { start.elapsed() }"));
    assert!(!reads(
        "/// Instant::now()\nfn f(x: Instant, elapsed: u8) { Instant::from(x); now() }"
    ));
    assert!(!reads(
        "#[cfg(test)] mod tests { fn f() { Instant::now() } }"
    ));
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
    let paths = sources::Paths::of(&sources::tokens(text), &[]);
    let mut paths: Vec<_> = (paths.used.union(&paths.published))
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

#[test]
fn what_a_parent_publishes_is_told_from_what_it_uses() {
    let text = "
        mod child;
        pub(crate) use child::{Published, Used};
        use child::Private;
        fn f(_: &Used) -> Private { child::make() }
        pub(in crate::elsewhere) fn g() {}
    ";
    let child = "child".to_owned();
    let paths = sources::Paths::of(&sources::tokens(text), &[&child]);
    let joined = |paths: &BTreeSet<Vec<String>>| -> Vec<_> {
        paths.iter().map(|path| path.join("::")).collect()
    };
    assert_eq!(joined(&paths.published), ["self::child::Published"]);
    let used = [
        "self::child::Private",
        "self::child::Used",
        "self::child::make",
    ];
    assert_eq!(joined(&paths.used), used);
}
