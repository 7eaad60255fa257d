//! In the repository only, not in a package of the crate. The README and the book: their links lead somewhere, their claims have proofs, their server does what it says.

use std::path::{Path, PathBuf};
use std::{fs, io};

mod budget;
mod cancellation;
mod claims;
mod figures;
mod first_server;
mod hello;
mod language;
mod links;
mod missing_calls;
mod public_functions;
mod release;
mod root_names;
mod samples;

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a member of a workspace")
        .to_owned()
}

/// The Markdown files that readers find, relative to the root.
fn pages() -> Vec<PathBuf> {
    let root = root();
    let names = "README CONTRIBUTING CHANGELOG RELEASING ROADMAP SECURITY";
    let mut pages: Vec<_> = (names.split(' '))
        .map(|it| PathBuf::from(it).with_extension("md"))
        .collect();
    for folder in ["docs", "timelog/docs"] {
        files_below(&root.join(folder), "md", &mut pages).expect("the documents are there");
    }
    for page in &mut pages {
        if let Ok(relative) = page.strip_prefix(&root) {
            *page = relative.to_owned();
        }
    }
    pages.sort();
    pages
}

fn files_below(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // What mdBook leaves there.
        if path.is_dir() && !path.ends_with("docs/book") {
            files_below(&path, extension, found)?;
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
    Ok(())
}
