//! Links between the pages.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::{pages, root};

/// The text outside of code, with the code left out.
fn prose(text: &str) -> String {
    let mut prose = String::new();
    let mut fence = None;
    for line in text.lines() {
        let mark = line.trim_start();
        let ticks = mark.len() - mark.trim_start_matches('`').len();
        match fence {
            Some(length) if ticks >= length && mark.trim_matches('`').trim().is_empty() => {
                fence = None;
            }
            Some(_) => {}
            None if ticks >= 3 => fence = Some(ticks),
            None => {
                // Every second piece between ticks is code.
                prose.extend(line.split('`').step_by(2));
            }
        }
        prose.push('\n');
    }
    prose
}

/// The targets of all links and pictures `[text](target)`.
fn targets(text: &str) -> Vec<String> {
    let prose = prose(text);
    (prose.match_indices("]("))
        .filter_map(|(at, mark)| prose[at + mark.len()..].split([')', '\n']).next())
        .map(|target| target.split(' ').next().unwrap_or(target).to_owned())
        .collect()
}

/// The anchors of the headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        let Some(heading) = line.strip_prefix('#').filter(|_| !is_code) else {
            continue;
        };
        let anchor: String = (heading
            .trim_start_matches('#')
            .trim()
            .to_lowercase()
            .chars())
        .filter(|&it| it.is_alphanumeric() || "-_ ".contains(it))
        .map(|it| if it == ' ' { '-' } else { it })
        .collect();
        let mut unique = anchor.clone();
        for number in 1.. {
            if anchors.insert(unique.clone()) {
                break;
            }
            unique = format!("{anchor}-{number}");
        }
    }
    anchors
}

/// `path` without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// What is wrong with a link from `page`.
fn fault(page: &Path, target: &str) -> Option<String> {
    if target.starts_with("http://") || target.starts_with("https://") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let folder = page.parent().unwrap_or(Path::new(""));
    let file = if path.is_empty() {
        page.to_owned()
    } else {
        plain(&folder.join(path))
    };
    if page.starts_with("docs") && !file.starts_with("docs") {
        return Some(format!("{}: {target} is not in the book", page.display()));
    }
    let file = root().join(file);
    if !file.exists() {
        return Some(format!("{}: there is no {target}", page.display()));
    }
    if !anchor.is_empty() && file.extension().is_some_and(|it| it == "md") {
        let text = fs::read_to_string(&file).expect("a file that exists");
        if !anchors(&text).contains(anchor) {
            return Some(format!("{}: no heading for {target}", page.display()));
        }
    }
    None
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut count = 0;
    let mut faults = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(root().join(&page)).expect("a page");
        for target in targets(&text) {
            count += 1;
            faults.extend(fault(&page, &target));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(count > 50, "only {count} links were found");
}

#[test]
fn every_page_is_in_the_table_of_contents_once() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).expect("the contents");
    let mut listed: Vec<_> = (targets(&summary).iter())
        .map(|target| plain(&Path::new("docs").join(target)))
        .collect();
    listed.sort();
    let pages: Vec<_> = (pages().into_iter())
        .filter(|page| page.starts_with("docs") && !page.ends_with("SUMMARY.md"))
        .collect();
    assert_eq!(listed, pages);
}

/// The table of contents alone is not enough: a reader comes from a page about something near to it.
#[test]
fn every_page_is_linked_from_another_page() {
    let mut linked: BTreeSet<_> = ["docs/README.md", "docs/SUMMARY.md"]
        .map(PathBuf::from)
        .into();
    for page in pages().iter().filter(|it| !it.ends_with("SUMMARY.md")) {
        let text = fs::read_to_string(root().join(page)).expect("a page");
        for target in targets(&text) {
            let path = target.split('#').next().unwrap_or_default();
            linked.insert(plain(&page.with_file_name(path)));
        }
    }
    let mut alone = pages();
    alone.retain(|page| page.starts_with("docs") && !linked.contains(page));
    assert!(alone.is_empty(), "no page leads to {alone:?}");
}

/// The benches replace what is between two marks, which have to be there, once and in order.
#[test]
fn marks_of_blocks_come_in_pairs() {
    let mut names = BTreeSet::new();
    for page in pages() {
        let text = fs::read_to_string(root().join(&page)).expect("a page");
        let mut open = None;
        for line in text.lines() {
            let mark = line
                .strip_prefix("<!-- ")
                .and_then(|it| it.strip_suffix(" -->"));
            match mark.and_then(|mark| mark.split_once(':')) {
                Some((name, "begin")) => {
                    assert_eq!(open.replace(name), None, "{}: {name}", page.display());
                    let is_new = names.insert((page.clone(), name.to_owned()));
                    assert!(is_new, "{}: two blocks {name}", page.display());
                }
                Some((name, "end")) => assert_eq!(open.take(), Some(name), "{}", page.display()),
                _ => {}
            }
        }
        assert_eq!(open, None, "{}", page.display());
    }
    assert!(names.len() > 8, "{names:?}");
}

#[test]
fn faults_are_found() {
    let page = Path::new("README.md");
    let text = "
# One `heading`, or two?
[a](docs/none.md) `[b](code)` ![c](docs/timers.md#none) [d](#one-heading-or-two)
```text
[e](in-code)
# no heading
```
[f](docs/timers.md)
";
    assert_eq!(targets(text).len(), 4);
    assert_eq!(anchors(text).len(), 1);
    assert!(anchors(text).contains("one-heading-or-two"));
    assert!(fault(page, "docs/none.md").is_some());
    assert!(fault(page, "docs/timers.md#none").is_some());
    assert!(fault(page, "docs/timers.md").is_none());
    assert!(fault(Path::new("docs/timers.md"), "../README.md").is_some());
}
