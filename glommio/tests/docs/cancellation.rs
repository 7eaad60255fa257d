//! Every public `async fn` and all that is polled, futures and streams, has a row in a table that
//! says what is true when it is given up: those of `io` in `docs/reference/file-guarantees.md`, all
//! others in `docs/reference/cancellation.md`.
//!
//! A section of these pages is for the modules that its heading, or the one above it, names. The first cell of a row
//! names `Type::function`s, a function alone for one outside of a type or of the type before it in
//! the cell, or a type that is polled. As `public_functions.rs`, this reads the source
//! as text. Of a function that a macro writes the type is not known, so that of any type will do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::public_functions::{Exported, collect, definition, implemented, is_word, sources};
use crate::root;

const PAGES: [&str; 2] = [
    "docs/reference/file-guarantees.md",
    "docs/reference/cancellation.md",
];

/// Something that is waited for.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Awaited {
    pub(crate) file: String,
    /// Empty for one outside of a type, `None` where a macro knows it.
    pub(crate) of_type: Option<String>,
    /// Empty for the type itself.
    pub(crate) function: String,
}

impl std::fmt::Display for Awaited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Awaited {
            file,
            of_type,
            function,
        } = self;
        match of_type.as_deref() {
            None => write!(f, "{file}: ..::{function}"),
            Some("") => write!(f, "{file}: {function}"),
            Some(of_type) if function.is_empty() => write!(f, "{file}: {of_type}"),
            Some(of_type) => write!(f, "{file}: {of_type}::{function}"),
        }
    }
}

/// Whether what begins in `line` is waited for.
fn is_awaited(line: &str) -> bool {
    line.starts_with("pub async fn ")
        || line.starts_with("pub fn ")
            && (line.split_once("->")).is_some_and(|(_, it)| {
                it.contains("impl Future")
                    || it.contains("impl Stream")
                    || it.contains("impl futures_core::Stream")
                    || it.contains("dyn Future")
            })
}

/// What is polled.
const POLLED: &str = "Future Stream Sink AsyncRead AsyncBufRead AsyncWrite AsyncSeek";

/// The type that is polled by the `impl` that begins in `line`.
fn polled(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let (of, rest) = rest.split_once(" for ")?;
    let of = of.rsplit(' ').next()?;
    let name = rest
        .trim_start_matches('&')
        .split(|it| !is_word(it))
        .next()?;
    let of = of.split('<').next()?;
    let is_polled = POLLED.split(' ').any(|it| it == of);
    (is_polled && !name.is_empty()).then_some(name)
}

/// The macros that implement something that is polled for the types that they are given.
fn implementing(sources: &BTreeMap<String, String>) -> BTreeSet<&str> {
    let macros = (sources.values()).flat_map(|text| text.split("macro_rules! ").skip(1));
    let implements =
        |body: &str| (POLLED.split(' ')).any(|it| body.contains(&format!("impl {it} for $")));
    macros
        .filter_map(|text| text.split_once("\n}")?.0.split_once(' '))
        .filter(|(_, body)| implements(body))
        .map(|(name, _)| name)
        .collect()
}

/// All that users can wait for, by the sources.
pub(crate) fn awaited(sources: &BTreeMap<String, String>) -> BTreeSet<Awaited> {
    let mut exported = Exported::default();
    collect(sources, "lib.rs", &mut exported);
    // That is for benches.
    exported.modules.remove("nop");
    let implementing = implementing(sources);
    let mut found = BTreeSet::new();
    for (file, text) in sources {
        let top = file.split(['/', '.']).next().unwrap_or(file);
        if !exported.modules.contains(top) {
            continue;
        }
        let mut of_type = None::<&str>;
        // Signatures that rustfmt has broken into lines are joined.
        let mut signature = None::<String>;
        for line in text.lines() {
            if line.starts_with("mod tests {") {
                break;
            }
            if line.starts_with("impl") {
                of_type = implemented(line);
            } else if line.starts_with('}') {
                of_type = None;
            }
            let given = (line.strip_suffix(");"))
                .and_then(|it| it.split_once("!("))
                .filter(|(name, _)| implementing.contains(name))
                .map_or("", |(_, types)| types);
            let given = given.split(", ").map(|it| it.trim_start_matches('&'));
            for name in given.chain(polled(line.trim_start())) {
                if name.is_empty() || !exported.names.contains(name) {
                    continue;
                }
                found.insert(Awaited {
                    file: file.clone(),
                    of_type: Some(name.to_owned()),
                    function: String::new(),
                });
            }
            let trimmed = line.trim_start();
            let indent = line.len() - trimmed.len();
            if let Some(begun) = &mut signature {
                begun.push(' ');
                begun.push_str(trimmed);
            } else if trimmed.starts_with("pub fn ") || trimmed.starts_with("pub async fn ") {
                signature = Some(trimmed.to_owned());
            }
            let Some(whole) = signature.take_if(|it| it.ends_with(['{', ';'])) else {
                continue;
            };
            let of_type = match (of_type, indent) {
                (Some(of_type), _) if exported.names.contains(of_type) => Some(of_type),
                (Some(_), _) => continue,
                (None, 0) => Some(""),
                (None, _) if text.contains("macro_rules!") => None,
                (None, _) => continue,
            };
            if is_awaited(&whole)
                && let Some(name) = definition(&whole)
                && (of_type != Some("") || exported.names.contains(name))
            {
                found.insert(Awaited {
                    file: file.clone(),
                    of_type: of_type.map(str::to_owned),
                    function: name.to_owned(),
                });
            }
        }
    }
    found
}

/// A row of a table: the modules of its section, as paths of files, and what its first cell names.
#[derive(Debug)]
struct Row {
    modules: Vec<String>,
    names: Vec<(String, String)>,
}

impl Row {
    fn is_about(&self, file: &str) -> bool {
        self.modules.iter().any(|module| {
            let rest = file.strip_prefix(&module[..]);
            rest.is_some_and(|rest| rest.starts_with(['/', '.']))
        })
    }

    fn has(&self, awaited: &Awaited) -> bool {
        self.is_about(&awaited.file)
            && self.names.iter().any(|(of_type, function)| {
                let is_type = awaited.of_type.as_ref().is_none_or(|it| it == of_type);
                is_type && *function == awaited.function
            })
    }
}

/// What stands between backticks.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// What the first cell of a row names: types and functions.
fn names(cell: &str) -> Vec<(String, String)> {
    let mut before = "";
    let mut names = Vec::new();
    for span in spans(cell) {
        let (of_type, function) = match span.rsplit_once("::") {
            Some(both) => both,
            None if span.starts_with(char::is_uppercase) => (span, ""),
            None => (before, span),
        };
        before = of_type;
        names.push((of_type.to_owned(), function.to_owned()));
    }
    names
}

fn rows(page: &str) -> Vec<Row> {
    let mut modules = Vec::new();
    let mut level = 0;
    let mut rows = Vec::new();
    let mut is_code = false;
    for line in page.lines() {
        is_code ^= line.starts_with("```");
        if is_code {
            continue;
        }
        let hashes = line.len() - line.trim_start_matches('#').len();
        let named: Vec<_> = spans(line).map(|it| it.replace("::", "/")).collect();
        if hashes > 0 && (hashes <= level || !named.is_empty()) {
            (modules, level) = (named, hashes);
        } else if let Some(row) = line.strip_prefix('|')
            && let Some((cell, _)) = row.split_once('|')
        {
            rows.push(Row {
                modules: modules.clone(),
                names: names(cell),
            });
        }
    }
    rows
}

fn all_rows() -> Vec<Row> {
    let pages = PAGES.map(|page| fs::read_to_string(root().join(page)).expect("it is there"));
    pages.iter().flat_map(|page| rows(page)).collect()
}

#[test]
fn all_that_can_be_awaited_is_in_the_tables_of_what_is_true_when_it_is_given_up() {
    let awaited = awaited(&sources());
    assert!(awaited.len() > 150, "only {} were found", awaited.len());
    let rows = all_rows();
    let missing: Vec<_> = (awaited.iter())
        .filter(|it| !rows.iter().any(|row| row.has(it)))
        .map(|it| it.to_string())
        .collect();
    assert!(
        missing.is_empty(),
        "in the tables of {PAGES:?} is no row, in a section for the module, of {missing:#?}"
    );
}

/// What users read in rustdoc. A function that is as another one, by a link to it, need not repeat it.
#[test]
fn the_documentation_of_each_says_what_is_lost() {
    let mut count = 0;
    let mut missing = Vec::new();
    let mut said = BTreeSet::new();
    for (file, text) in sources() {
        let mut docs = String::new();
        let mut signature = String::new();
        for (number, line) in text.lines().map(str::trim).enumerate() {
            if line.starts_with("mod tests {") {
                break;
            }
            if line.starts_with("///") {
                docs.push_str(line);
                continue;
            }
            if line.starts_with("pub fn ") || line.starts_with("pub async fn ") {
                signature.clear();
            } else if signature.is_empty() {
                if !line.starts_with("#[") {
                    docs.clear();
                }
                continue;
            }
            signature.push_str(line);
            if signature.ends_with(['{', ';']) {
                if is_awaited(&signature) {
                    count += 1;
                    if docs.contains("# Cancel safety") {
                        said.extend(definition(&signature).map(str::to_owned));
                    } else {
                        let twin = (docs.split_once("As [`")).and_then(|it| it.1.split('`').next());
                        let twin = twin.and_then(|it| it.rsplit("::").next()).unwrap_or("");
                        missing.push((
                            twin.to_owned(),
                            format!("{file}:{}: {signature}", number + 1),
                        ));
                    }
                }
                signature.clear();
                docs.clear();
            }
        }
    }
    missing.retain(|(twin, _)| !said.contains(twin));
    assert!(missing.is_empty(), "no `# Cancel safety` at {missing:#?}");
    assert!(count > 150, "only {count} were found");
}

#[test]
fn the_tables_name_nothing_that_is_not_there() {
    let sources = sources();
    let mut unknown = Vec::new();
    for row in all_rows().iter().filter(|row| !row.modules.is_empty()) {
        let of_section = || {
            let files = sources.iter().filter(|(file, _)| row.is_about(file));
            files.map(|(_, text)| text)
        };
        for (of_type, function) in &row.names {
            let words = [of_type, function];
            let is_known = words.iter().all(|word| {
                let is_there = |text: &String| text.split(|it| !is_word(it)).any(|it| it == *word);
                word.is_empty() || of_section().any(is_there)
            });
            if !is_known {
                unknown.push(format!("{:?}: {of_type}::{function}", row.modules));
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn the_tables_are_understood() {
    assert!(is_awaited("pub async fn a() {"));
    assert!(is_awaited("pub fn a(&self) -> impl Future<Output = u8> {"));
    assert!(!is_awaited("pub fn a(f: impl Future<Output = u8>) -> u8 {"));
    assert_eq!(polled("impl<T> Future for A<T> {"), Some("A"));
    assert_eq!(polled("impl AsyncWrite for &A {"), Some("A"));
    assert_eq!(polled("impl<T> Debug for A<T> {"), None);
    let page = "## Files (`io`, `a::b`)\n| | b |\n| `A::c`, `d`, `E` | `f` |\n```\n# x\n```\n### Else\n| `g` | |\n## H\n| |";
    let rows = rows(page);
    assert_eq!(rows.len(), 4);
    let row = &rows[1];
    let named = |of_type: &str, function: &str| (of_type.to_owned(), function.to_owned());
    assert_eq!(
        row.names,
        [named("A", "c"), named("A", "d"), named("E", "")]
    );
    assert!(row.is_about("io/x.rs") && row.is_about("io.rs") && row.is_about("a/b.rs"));
    assert!(!row.is_about("a/bc.rs") && !row.is_about("iox.rs"));
    let awaited = |of_type: Option<&str>, function: &str| Awaited {
        file: "io/x.rs".to_owned(),
        of_type: of_type.map(str::to_owned),
        function: function.to_owned(),
    };
    assert!(row.has(&awaited(Some("A"), "d")) && row.has(&awaited(None, "d")));
    assert!(row.has(&awaited(Some("E"), "")) && !row.has(&awaited(Some("E"), "d")));
    assert_eq!(rows[2].modules, row.modules);
    assert!(rows[3].modules.is_empty());
}
