//! Every public future is in the table of `docs/reference/budget.md`, which is made here: of the source, which has
//! all that can be awaited (see `cancellation.rs`), and of the cases in `glommio/tests/budget`, which
//! show of each that it takes part. What takes part by no case is exempt, with a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::{env, fs};

use crate::cancellation::{Awaited, awaited};
use crate::public_functions::sources;
use crate::root;

const PAGE: &str = "docs/reference/budget.md";

const HEAD: &str = "| module | futures and streams | count |\n|---|---|---|\n";

const INNER: &str = "no: as the future in it";
const WAITS: &str = "no: always suspends the task";

/// Those that do not count.
const EXEMPT: [(&str, &str); 9] = [
    ("ExecutorProxy::spawn_blocking", WAITS),
    ("ExecutorProxy::spawn_blocking_send", WAITS),
    ("ExecutorProxy::yield_if_needed", ASKS),
    ("ExecutorProxy::yield_now", WAITS),
    ("ExecutorProxy::yield_task_queue_now", WAITS),
    ("TaskLocalFuture", INNER),
    ("Unconstrained", INNER),
    ("advance", WAITS),
    ("yield_if_needed", ASKS),
];

const ASKS: &str = "no: suspends the task whenever others are to run";

/// The names of all cases, without what follows a comma.
fn cases() -> BTreeSet<String> {
    let mut cases = BTreeSet::new();
    let folder = root().join("glommio/tests/budget");
    for file in fs::read_dir(folder).expect("it is there") {
        let text = fs::read_to_string(file.expect("an entry").path()).expect("text");
        for call in ["counts!(", "is_refused("] {
            let quoted = text.split(call).skip(1).map(str::trim_start);
            let names = quoted.filter_map(|it| it.strip_prefix('"')?.split(['"', ',']).next());
            cases.extend(names.map(str::to_owned));
        }
    }
    cases
}

/// The top-level module of a file.
fn module(file: &str) -> &str {
    file.split(['/', '.']).next().unwrap_or(file)
}

/// What `awaited` is called in the cases. Of a function that a macro writes for several types, all
/// cases of that name whose types are in the same module.
fn names(
    awaited: &Awaited,
    cases: &BTreeSet<String>,
    sources: &BTreeMap<String, String>,
) -> Vec<String> {
    let function = &awaited.function;
    let is_here = |of_type: &str| {
        let defines = |text: &String| text.contains(&format!("pub struct {of_type}"));
        let here = |file: &str| module(file) == module(&awaited.file);
        (sources.iter()).any(|(file, text)| here(file) && defines(text))
    };
    match awaited.of_type.as_deref() {
        None => {
            let is_of = |it: &&String| {
                let parts = it.rsplit_once("::");
                parts.is_some_and(|(of_type, name)| name == function && is_here(of_type))
            };
            cases.iter().filter(is_of).cloned().collect()
        }
        Some("") => vec![function.clone()],
        Some(of_type) if function.is_empty() => vec![of_type.to_owned()],
        Some(of_type) => vec![format!("{of_type}::{function}")],
    }
}

#[test]
fn all_that_can_be_awaited_is_in_the_table_of_what_counts_in_the_budget() {
    let (sources, cases) = (sources(), cases());
    let awaited = awaited(&sources);
    let mut rows = BTreeMap::<_, BTreeSet<String>>::new();
    let (mut missing, mut known) = (Vec::new(), BTreeSet::new());
    for it in &awaited {
        let names = names(it, &cases, &sources);
        if names.is_empty() {
            missing.push(it.to_string());
        }
        let module = module(&it.file);
        for name in names {
            let exempt = EXEMPT.iter().find(|exempt| exempt.0 == name);
            let how = match exempt {
                Some((_, why)) => *why,
                None if cases.contains(&name) => "yes",
                None => {
                    missing.push(it.to_string());
                    continue;
                }
            };
            let row = rows.entry((module, how)).or_default();
            row.insert(format!("`{name}`"));
            known.insert(name);
        }
    }
    assert!(
        missing.is_empty(),
        "neither has a case in glommio/tests/budget nor is exempt: {missing:#?}"
    );
    let unknown: Vec<_> = cases.difference(&known).collect();
    assert!(unknown.is_empty(), "cases of nothing public: {unknown:?}");

    let mut table = HEAD.to_owned();
    for ((module, how), names) in rows {
        let names = Vec::from_iter(names).join(", ");
        table.push_str(&format!("| `{module}` | {names} | {how} |\n"));
    }
    let page = root().join(PAGE);
    let text = fs::read_to_string(&page).expect("it is there");
    let (before, found) = text.split_once(HEAD).expect("it has the table, at its end");
    if env::var_os("GLOMMIO_WRITE_TABLES").is_some() {
        fs::write(page, format!("{before}{table}")).expect("it can be written");
        return;
    }
    assert!(
        format!("{HEAD}{found}") == table,
        "{PAGE} is not up to date: run `GLOMMIO_WRITE_TABLES=1 cargo test -p glommio --test docs budget`"
    );
}
