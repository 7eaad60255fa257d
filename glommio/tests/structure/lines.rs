//! How many lines each area of the tree has at most. A change that needs more raises the limit in `lines.txt`
//! and says why in its commit.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::workspace;

/// The areas in the order of `lines.txt`: what they are called there, and the folders that they consist of.
const AREAS: [(&str, &[&str]); 9] = [
    ("the library", &["glommio/src"]),
    ("tests of the library", &["glommio/tests"]),
    (
        "bridges and macros",
        &[
            "glommio-h3",
            "glommio-hyper",
            "glommio-macros",
            "glommio-quic",
            "glommio-tokio",
        ],
    ),
    ("staged-wheel", &["staged-wheel"]),
    ("simulated-kernel", &["simulated-kernel"]),
    ("soak", &["soak"]),
    (
        "benches with peers",
        &["benches", "support", "glommio/benches"],
    ),
    ("examples with tests", &["examples", "glommio/examples"]),
    ("timelog", &["timelog"]),
];

/// The lines of the files in `folder` that end with `extension`, by whether they are tests beside the code.
fn lines(folder: &Path, extension: &str) -> [usize; 2] {
    let mut sum = [0; 2];
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry of it").path();
        let name = path.file_name().expect("it has one").to_string_lossy();
        if path.is_dir() && name != "target" && name != "book" {
            let below = lines(&path, extension);
            let is_test = usize::from(name == "tests");
            sum[is_test] += below[0];
            sum[1] += below[1];
        } else if name.ends_with(extension) {
            let text = fs::read_to_string(&path).expect("text");
            let is_test = name.ends_with("tests.rs");
            sum[usize::from(is_test)] += text.lines().count();
        }
    }
    sum
}

#[test]
fn no_area_has_more_lines_than_its_limit() {
    let mut counted = BTreeMap::new();
    for (area, folders) in AREAS {
        for folder in folders {
            let [code, tests] = lines(&workspace().join(folder), ".rs");
            *counted.entry(area).or_insert(0) += code;
            // Those in the sources of the library are counted with those in its folder of tests.
            let of_tests = if area == "the library" {
                "tests of the library"
            } else {
                area
            };
            *counted.entry(of_tests).or_insert(0) += tests;
        }
    }
    let [docs, _] = lines(&workspace().join("docs"), ".md");
    counted.insert("docs", docs);

    let table = include_str!("lines.txt");
    let limits: BTreeMap<_, usize> = (table.lines())
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (area, limit) = line.rsplit_once(' ').expect("an area and its limit");
            (area.trim_end(), limit.parse().expect("a number of lines"))
        })
        .collect();
    assert!(counted.keys().eq(limits.keys()), "the areas of lines.txt");
    for (area, count) in counted {
        let limit = limits[area];
        assert!(
            count <= limit,
            "{area}: {count} lines, of which lines.txt allows {limit}"
        );
    }
}
