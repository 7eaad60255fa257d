//! What the README promises has a command that proves it, in `docs/claims.md`, and its figures are
//! those that were measured.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::root;

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The cells of a row of a table, none for other lines and for the line below the head.
fn cells(line: &str) -> Option<Vec<&str>> {
    let row = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let cells: Vec<_> = row.split('|').map(str::trim).collect();
    let is_rule = |cell: &&str| !cell.is_empty() && cell.chars().all(|it| "-:".contains(it));
    (!cells.iter().all(is_rule)).then_some(cells)
}

/// The rows of the tables below a heading, without the head.
fn rows_below<'a>(page: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let (_, rest) = (page.split_once(&format!("\n## {heading}\n")))
        .unwrap_or_else(|| panic!("no heading {heading}"));
    let section = rest.split("\n## ").next().unwrap_or(rest);
    section.lines().filter_map(cells).skip(1).collect()
}

/// Text outside of code and tables, a line for each paragraph or item, without marks for bold.
fn prose(page: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let mut is_code = false;
    for line in page.lines() {
        is_code ^= line.starts_with("```");
        let is_text = !is_code && !line.starts_with(['`', '|', '#']) && !line.is_empty();
        if !is_text || line.starts_with("- ") {
            paragraphs.push(String::new());
        }
        if is_text {
            let last = paragraphs.last_mut().expect("one at least");
            last.push_str(line.trim_start_matches("- "));
            last.push(' ');
        }
    }
    (paragraphs.iter())
        .map(|it| it.trim().replace("**", ""))
        .filter(|it| !it.is_empty())
        .collect()
}

/// Sentences and their halves, as claims quote them.
fn sentences(paragraph: &str) -> impl Iterator<Item = &str> {
    paragraph
        .split_inclusive(". ")
        .flat_map(|it| it.split("; "))
        .flat_map(|it| it.split(": "))
        .map(str::trim)
}

fn has_word(text: &str, words: &[&str]) -> bool {
    text.split(|it: char| !it.is_alphanumeric())
        .any(|it| words.contains(&it.to_lowercase().as_str()))
}

/// What is missing or wrong in `command`, which is to be run at the root.
fn fault(command: &str) -> Option<String> {
    let words: Vec<_> = command.split(' ').collect();
    let after = |flag: &str| {
        let at = words.iter().position(|it| *it == flag)?;
        words.get(at + 1).copied()
    };
    let exists = |path: &str| root().join(path).exists();
    let fault = match words[..] {
        ["bash", script, ..] => (!exists(script)).then(|| format!("no script {script}")),
        ["cargo", "run", ..] => {
            let package = after("-p")?;
            (!exists(&format!("{package}/src/main.rs"))).then(|| format!("no program {package}"))
        }
        ["cargo", "bench", ..] => {
            let bench = after("--bench").unwrap_or("");
            let is_there = exists(&format!("benches/benches/{bench}/main.rs"));
            (!is_there).then(|| format!("no bench {bench:?}"))
        }
        ["cargo", "test", ..] => {
            let package = after("-p").unwrap_or("");
            let test = after("--test").unwrap_or("");
            let filter = *words.last().expect("a word");
            let folder = root().join(package).join("tests").join(test);
            (!has_test(&folder, filter)).then(|| format!("no test {filter} in {package} {test}"))
        }
        _ => Some("a command of another kind".to_owned()),
    };
    fault.map(|fault| format!("{command}: {fault}"))
}

/// What is wrong with the planted defect that is to make `command` fail.
fn fault_of_defect(command: &str, defect: &str) -> Option<String> {
    if defect == "–" {
        // Of lists, of the compiler, or measured.
        let is_other = command.starts_with("bash compat/") || command.contains("cargo bench");
        let compares = [
            "no_dependency_compiles_c",
            "errors_go_where_ecosystem_errors_go",
        ];
        let is_needless = is_other || compares.iter().any(|it| command.ends_with(it));
        return (!is_needless).then(|| format!("{command}: no defect makes it fail"));
    }
    let path = root().join(format!("soak/planted/{}.patch", code(defect)));
    let patch = fs::read_to_string(path).unwrap_or_default();
    let filter = command.rsplit(' ').next().expect("a word");
    let mut lines = patch.lines();
    let is_seen = lines.any(|line| match line.split_once(':') {
        Some(("test", test)) => test.contains(filter),
        Some(("row", _)) => command == "cargo run --release -p soak",
        _ => false,
    });
    (!is_seen).then(|| format!("{command}: {defect} is not planted for it"))
}

/// Whether a module of that name, or a test whose name begins so, is in `folder`.
fn has_test(folder: &Path, filter: &str) -> bool {
    let Ok(files) = fs::read_dir(folder) else {
        return false;
    };
    files.flatten().any(|file| {
        let path = file.path();
        let text = fs::read_to_string(&path).unwrap_or_default();
        let has_tests = text.contains("#[test]") || text.contains("#[run_test");
        let is_module = path.file_stem().is_some_and(|it| it == filter);
        let is_test = ["\nfn ", " fn "]
            .iter()
            .any(|it| text.contains(&format!("{it}{filter}")));
        has_tests && (is_module || is_test)
    })
}

fn code(cell: &str) -> &str {
    cell.trim_matches('`')
}

#[test]
fn each_promise_of_the_readme_has_a_proof() {
    let (readme, claims) = (read("README.md"), read("docs/claims.md"));
    let promises = rows_below(&claims, "Promises");
    let paragraphs = prose(&readme);
    let mut faults = Vec::new();
    for row in &promises {
        let [quote, command, _, defect] = row[..] else {
            panic!("four cells: {row:?}");
        };
        let is_said = readme.replace("**", "").replace('\n', " ").contains(quote);
        if !is_said {
            faults.push(format!("the README does not say {quote:?}"));
        }
        faults.extend(fault(code(command)));
        faults.extend(fault_of_defect(code(command), defect));
    }
    let has_proof = |text: &str| promises.iter().any(|row| text.contains(row[0]));
    for line in readme.lines().filter(|it| it.starts_with("- **")) {
        let text = line.replace("**", "");
        if !has_proof(&text) {
            faults.push(format!("no proof of {text:?}"));
        }
    }
    let mut count = 0;
    for sentence in paragraphs.iter().flat_map(|it| sentences(it)) {
        if has_word(sentence, &["no", "never"]) {
            count += 1;
            let is_part = promises.iter().any(|row| {
                let quotes = sentence.contains(row[0]);
                quotes
                    || paragraphs
                        .iter()
                        .any(|it| it.starts_with(row[0]) && it.contains(sentence))
            });
            if !is_part {
                faults.push(format!("no proof of {sentence:?}"));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(count >= 3, "only {count} sentences were found");
}

/// The first number of a cell, as it is written; nothing for the dash of a missing one.
fn figure(cell: &str) -> &str {
    let first = cell.split(' ').next().unwrap_or("");
    if first == "–" || first == "—" {
        ""
    } else {
        first.trim_matches('*')
    }
}

/// Whether tokio's figure is better, of those of a row in the order of the columns. Smaller is.
fn is_lost(figures: &[String]) -> bool {
    let number = |at: usize| figures[at].parse::<f64>();
    let [ours, tokio] = [number(0), number(1)].map(|it| it.expect("a number"));
    tokio < ours
}

/// The column of `page` that has the figures of a column of the README.
const COLUMNS: [(&str, &str); 3] = [
    ("this crate", "ours"),
    ("tokio", "tokio"),
    ("glommio 0.9.0", "glommio 0.9.0"),
];

/// All rows named `title` in `page`: the commit at which each was measured, and its figures in the
/// order of the columns above. A row "same, p99" below "ping: p50" is called "ping: p99". Where a table
/// has a row for each server, `title` names a column, after what the line above the table begins with if
/// several tables have it.
fn measured(page: &str, title: &str) -> BTreeSet<(String, Vec<String>)> {
    let mut found = BTreeSet::new();
    let mut commit = "";
    let mut head: Option<Vec<&str>> = None;
    let mut of_servers = Vec::<String>::new();
    let mut subject = "";
    let mut caption = "";
    for line in page.lines().chain([""]) {
        if let Some((_, rest)) = line.split_once("; commit ") {
            commit = rest.split([';', ' ']).next().unwrap_or("");
        }
        let Some(row) = cells(line) else {
            if !line.starts_with('|') {
                if of_servers.iter().any(|it| !it.is_empty()) {
                    found.insert((commit.to_owned(), std::mem::take(&mut of_servers)));
                }
                head = None;
                if !line.is_empty() {
                    caption = line.trim_start_matches('#').trim_start();
                }
            }
            continue;
        };
        let column_of_servers = match title.split_once(": ") {
            Some((of, column)) if caption.starts_with(of) => column,
            _ => title,
        };
        let Some(head) = &head else {
            if row[0] == "server" && row.contains(&column_of_servers) {
                of_servers = vec![String::new(); COLUMNS.len()];
            }
            head = Some(row);
            continue;
        };
        let name = match row[0].strip_prefix("same, ") {
            Some(rest) => format!("{subject}: {rest}"),
            None => {
                subject = row[0].split_once(": ").map_or(row[0], |it| it.0);
                row[0].to_owned()
            }
        };
        // From the smallest to the largest figure: not medians.
        let is_spread = row[1..].iter().any(|it| it.contains(" – "));
        if let Some(at) = head.iter().position(|it| *it == column_of_servers)
            && let Some(column) = COLUMNS.iter().position(|(_, it)| *it == row[0])
        {
            of_servers[column] = figure(row[at]).to_owned();
        } else if name == title && !is_spread {
            let of = |name: &str| {
                let at = head.iter().position(|it| *it == name);
                at.map_or(String::new(), |at| figure(row[at]).to_owned())
            };
            let figures = COLUMNS.iter().map(|(_, name)| of(name)).collect();
            found.insert((commit.to_owned(), figures));
        }
    }
    found
}

/// With `WRITE_README=1` in the environment, the README and the claims take their figures and commits
/// from the pages first.
#[test]
fn the_figures_of_the_readme_are_those_that_were_measured() {
    let (mut readme, mut claims) = (read("README.md"), read("docs/claims.md"));
    if std::env::var_os("WRITE_README").is_some() {
        write_figures(&mut readme, &mut claims);
    }
    let rows = rows_below(&claims, "Figures");
    let figures = rows_below(&readme, "Measured");
    let (mut faults, mut bold) = (Vec::new(), 0);
    let head = readme.lines().filter_map(cells).next().expect("a table");
    assert_eq!(head[1..], COLUMNS.map(|(ours, _)| ours));
    for row in &figures {
        let Some(claim) = rows.iter().find(|claim| claim[0] == row[0]) else {
            faults.push(format!("no claim for {:?}", row[0]));
            continue;
        };
        let [_, link, title, commit, command] = claim[..] else {
            panic!("five cells: {claim:?}");
        };
        faults.extend(fault(code(command)));
        let page = linked(link);
        if !page.contains(code(command)) {
            faults.push(format!("{link} does not name {command}"));
        }
        let written: Vec<_> = row[1..].iter().map(|it| figure(it).to_owned()).collect();
        let is_bold = row[1].starts_with("**");
        bold += usize::from(is_bold);
        if is_bold != is_lost(&written) {
            faults.push(format!(
                "{:?}: bold if tokio is better, {written:?}",
                row[0]
            ));
        }
        let measured = measured(&page, title);
        if !measured.contains(&(commit.to_owned(), written.clone())) {
            faults.push(format!(
                "{:?}: {written:?} at {commit}, but measured {measured:?}",
                row[0]
            ));
        }
    }
    for claim in rows
        .iter()
        .filter(|it| !figures.iter().any(|row| row[0] == it[0]))
    {
        faults.push(format!("the README has no row {:?}", claim[0]));
    }
    let commits: BTreeSet<_> = rows.iter().map(|claim| claim[3]).collect();
    if commits.len() != 1 {
        faults.push(format!("figures of several commits: {commits:?}"));
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(bold >= 2, "the README tells of {bold} losses only");
    assert!(figures.len() > 5, "only {} rows were found", figures.len());
}

/// The section that a link of the claims leads to.
fn linked(link: &str) -> String {
    let target = link.split_once("](").expect("a link").1;
    let (page, anchor) = target.split_once('#').expect("a section");
    let is_wanted = |heading: &str| {
        let kept = heading
            .chars()
            .filter(|it| it.is_alphanumeric() || " -".contains(*it));
        let slug: String = kept
            .collect::<String>()
            .to_lowercase()
            .trim()
            .replace(' ', "-");
        slug == anchor.trim_end_matches(')')
    };
    let page = read(&format!("docs/{page}"));
    let section = page
        .split("\n## ")
        .find(|it| is_wanted(it.lines().next().unwrap_or("")));
    section
        .unwrap_or_else(|| panic!("no section {target}"))
        .to_owned()
}

/// Brings what the pages measured to the README, and the commits to the claims.
fn write_figures(readme: &mut String, claims: &mut String) {
    let before = claims.clone();
    for claim in rows_below(&before, "Figures") {
        let [row, link, title, commit, _] = claim[..] else {
            panic!("five cells: {claim:?}");
        };
        let measured = measured(&linked(link), title);
        assert_eq!(measured.len(), 1, "{title}: {measured:?}");
        let (now, figures) = measured.first().expect("one");
        let replace = |text: &mut String, line: &dyn Fn(&str) -> String| {
            let start = format!("| {row} |");
            let lines = text.lines();
            let new = lines.map(|it| {
                if it.starts_with(&start) {
                    line(it)
                } else {
                    it.to_owned()
                }
            });
            *text = new.map(|it| it + "\n").collect();
        };
        let cell = |(at, it): (usize, &String)| match (at, &it[..]) {
            (_, "") => " – |".to_owned(),
            (0, it) if is_lost(figures) => format!(" **{it}** |"),
            (_, it) => format!(" {it} |"),
        };
        let cells: String = figures.iter().enumerate().map(cell).collect();
        replace(readme, &|_| format!("| {row} |{cells}"));
        replace(claims, &|it| {
            it.replace(&format!("| {commit} |"), &format!("| {now} |"))
        });
    }
    fs::write(root().join("README.md"), readme).expect("the README can be written");
    fs::write(root().join("docs/claims.md"), claims).expect("the claims can be written");
}

/// Without its own build script and without crates that compile or look for C libraries.
#[test]
fn no_dependency_compiles_c() {
    let lock = read("Cargo.lock");
    let packages: Vec<(&str, Vec<&str>)> = (lock.split("[[package]]").skip(1))
        .map(|package| {
            let quoted: Vec<_> = package.split('"').skip(1).step_by(2).collect();
            let dependencies = package.split_once("dependencies = [").map_or("", |it| it.1);
            let names = dependencies.split('"').skip(1).step_by(2);
            (
                quoted[0],
                names.filter_map(|it| it.split(' ').next()).collect(),
            )
        })
        .collect();
    // Those of tests and of the model checker are in other sections.
    let manifest = read("glommio/Cargo.toml");
    let (_, direct) = manifest.split_once("\n[dependencies]\n").expect("some");
    let direct = direct.split("\n[").next().unwrap_or(direct);
    let mut queue: Vec<_> = (direct.lines().filter(|line| !line.starts_with('#')))
        .filter_map(|line| line.split(['.', ' ']).next())
        .collect();
    let mut known: BTreeSet<_> = queue.iter().copied().collect();
    while let Some(name) = queue.pop() {
        for (_, dependencies) in packages.iter().filter(|(it, _)| *it == name) {
            // loom is for `--cfg loom` alone.
            let others = dependencies.iter().filter(|it| **it != "loom");
            queue.extend(others.filter(|it| known.insert(it)));
        }
    }
    assert!(
        known.contains("io-uring") && known.contains("libc"),
        "{known:?}"
    );
    for compiles in ["cc", "cmake", "bindgen", "pkg-config", "vcpkg", "autotools"] {
        assert!(!known.contains(compiles), "{compiles} in {known:?}");
    }
    assert!(!root().join("glommio/build.rs").exists());
}

#[test]
fn commands_are_checked() {
    assert_eq!(fault("bash .ci/test"), None);
    assert_eq!(
        fault("cargo test -p glommio --test docs commands_are_checked"),
        None
    );
    for wrong in [
        "bash .ci/missing",
        "cargo test -p glommio --test docs no_such_test_is_here",
        "cargo bench -p benches --bench missing",
        "make",
    ] {
        assert!(fault(wrong).is_some(), "{wrong}");
    }
    let page = "; commit a1\n\n| row | ours | tokio |\n|---|--:|--:|\n| x: y | 1 (2) | 3 |\n| same, z | 6 | |\n\n| row | ours |\n|---|---|\n| x: y | 0 – 2 |\n\n; commit b2\n\n| row | ours |\n|---|---|\n| x: y | 4 |\n\nHTTP/1.1, wrk:\n\n| server | B |\n|---|---|\n| ours | 5 (1) |\n\nHTTP/2:\n\n| server | B |\n|---|---|\n| ours | 7 |\n| tokio | — |\n";
    let figures =
        |commit: &str, list: [&str; 3]| (commit.to_owned(), list.map(str::to_owned).to_vec());
    let [first, second] = [["1", "3", ""], ["4", "", ""]];
    assert_eq!(
        measured(page, "x: y"),
        BTreeSet::from([figures("a1", first), figures("b2", second)])
    );
    assert_eq!(
        measured(page, "x: z"),
        BTreeSet::from([figures("a1", ["6", "", ""])])
    );
    let [http1, http2] = [["5", "", ""], ["7", "", ""]].map(|it| figures("b2", it));
    assert_eq!(
        measured(page, "HTTP/1.1: B"),
        BTreeSet::from([http1.clone()])
    );
    assert_eq!(measured(page, "HTTP/2: B"), BTreeSet::from([http2.clone()]));
    assert_eq!(measured(page, "B"), BTreeSet::from([http1, http2]));
    let lost = |list: [&str; 2]| is_lost(&list.map(str::to_owned));
    assert!(lost(["2", "1.5"]) && !lost(["1.5", "2"]));
    assert_eq!(["**2**", "3 (1)", "–"].map(figure), ["2", "3", ""]);
    assert_eq!(
        prose("a\nb\n\n```\nc\n```\n- **d**\n- e\n|f|"),
        ["a b", "d", "e"]
    );
    assert!(has_word("No timer", &["no"]) && !has_word("nothing", &["no"]));
}
