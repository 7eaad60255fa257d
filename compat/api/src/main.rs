//! `api-check list JSON` prints the public API in a rustdoc JSON file, one item a line.
//!
//! `api-check compare JSON LIST DIFFERENCES` succeeds if each line of LIST, or what a program can do with it, is in the JSON file too, but
//! for the lines of DIFFERENCES. A line of that file that does not differ is a failure as well.

mod normal_form;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::{env, error, fs};

type Error = Box<dyn error::Error>;

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["list", json] => list(json).map(|lines| {
            for line in lines {
                println!("{line}");
            }
            true
        }),
        ["compare", json, list, differences] => compare(json, list, differences),
        _ => Err("usage: api-check list JSON | compare JSON LIST DIFFERENCES".into()),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("api-check: {error}");
            ExitCode::from(2)
        }
    }
}

/// The items in their normal form, sorted.
fn list(json: &str) -> Result<BTreeSet<String>, Error> {
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .build()?;
    let lines: Vec<_> = api.items().map(ToString::to_string).collect();
    Ok(normal_form::items(&lines))
}

fn read(path: &str) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}").into())
}

/// The lines of a list, without comments.
fn lines(text: &str) -> BTreeSet<&str> {
    (text.lines())
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

fn compare(json: &str, reference: &str, differences: &str) -> Result<bool, Error> {
    let items = list(json)?;
    let (reference, expected) = (read(reference)?, read(differences)?);
    let (reference, expected) = (lines(&reference), lines(&expected));
    let missing: BTreeSet<_> = (reference.iter().copied())
        .filter(|it| !items.contains(*it))
        .collect();
    let unlisted: Vec<_> = missing.difference(&expected).collect();
    let stale: Vec<_> = expected.difference(&missing).collect();
    for line in &unlisted {
        println!("not in this crate, and not in {differences}:\n  {line}");
    }
    for line in &stale {
        println!("in {differences}, and no difference:\n  {line}");
    }
    println!(
        "{} of {} items of the reference are here in the same form; {} differ, {} of them unlisted; {} stale",
        reference.len() - missing.len(),
        reference.len(),
        missing.len(),
        unlisted.len(),
        stale.len(),
    );
    Ok(unlisted.is_empty() && stale.is_empty())
}
