//! Reads the modules of a crate and the paths in them, token by token: macros have paths too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A module by its path from the root, which is empty.
pub type Module = Vec<String>;

/// The modules of a crate, without its tests.
pub struct Crate {
    modules: BTreeMap<Module, Paths>,
}

/// The paths that a module's file names: those of `use` items, and all others that begin with `crate`,
/// `self`, `super` or a child of the module.
#[derive(Default)]
pub struct Paths {
    pub used: BTreeSet<Vec<String>>,
    /// Names that it publishes for others and does not use itself.
    pub published: BTreeSet<Vec<String>>,
}

impl Crate {
    pub fn read(root: &Path) -> Self {
        let files: BTreeMap<_, _> = files(root)
            .into_iter()
            .filter(|(path, _)| !is_test(path))
            .map(|(path, text)| (module_of(&path), tokens(&text)))
            .collect();
        let modules = (files.iter())
            .map(|(module, code)| {
                let is_child =
                    |it: &&Module| it.len() == module.len() + 1 && it.starts_with(module);
                let children = files.keys().filter(is_child);
                let names: Vec<_> = children.filter_map(|it| it.last()).collect();
                (module.clone(), Paths::of(code, &names))
            })
            .collect();
        Crate { modules }
    }

    /// From which module each module imports.
    pub fn imports(&self) -> BTreeSet<(Module, Module)> {
        let mut imports = BTreeSet::new();
        for (module, paths) in &self.modules {
            for path in &paths.used {
                let Some(path) = absolute(module, path) else {
                    continue;
                };
                let to = self.defined_in(&path, 0);
                if to != *module {
                    imports.insert((module.clone(), to));
                }
            }
        }
        imports
    }

    /// The names that modules take from the root although another module defines them.
    pub fn imports_of_face(&self) -> BTreeSet<(Module, String)> {
        let mut found = BTreeSet::new();
        for (module, paths) in &self.modules {
            for path in paths.used.iter().chain(&paths.published) {
                if let [first, name] = &path[..]
                    && first == "crate"
                    && !module.is_empty()
                    && !self.modules.contains_key(&path[1..])
                    && !self.defined_in(&path[1..], 0).is_empty()
                {
                    found.insert((module.clone(), name.clone()));
                }
            }
        }
        found
    }

    /// The module that defines what a path from the root names.
    fn defined_in(&self, path: &[String], depth: usize) -> Module {
        let len = (0..=path.len())
            .rev()
            .find(|&len| self.modules.contains_key(&path[..len]))
            .expect("the root is a module");
        let (module, rest) = path.split_at(len);
        // A name that the module has from elsewhere.
        if let Some(name) = rest.first()
            && depth < 8
        {
            let paths = &self.modules[module];
            for import in paths.used.iter().chain(&paths.published) {
                if import.last() == Some(name)
                    && let Some(import) = absolute(module, import)
                    && import != path[..len + 1]
                {
                    let from = self.defined_in(&import, depth + 1);
                    if from != module {
                        return from;
                    }
                }
            }
        }
        module.to_vec()
    }
}

/// All Rust files below `root`, by their path from there.
pub fn files(root: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("an entry of it").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("text");
                found.push((path.strip_prefix(root).expect("below it").to_owned(), text));
            }
        }
    }
    found
}

pub fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs")
}

fn module_of(path: &Path) -> Module {
    let mut module: Module = (path.with_extension("").iter())
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if (module.last()).is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        module.pop();
    }
    module
}

/// The path from the root of the crate; none if it leads into another crate.
fn absolute(module: &[String], path: &[String]) -> Option<Vec<String>> {
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([module, &path[1..]].concat()),
        "super" => {
            let up = path.iter().take_while(|part| *part == "super").count();
            let kept = module.len().checked_sub(up)?;
            Some([&module[..kept], &path[up..]].concat())
        }
        _ => None,
    }
}

pub fn tokens(text: &str) -> Vec<TokenTree> {
    let tokens: TokenStream = text.parse().expect("it compiles");
    tokens.into_iter().collect()
}

/// Whether anything in `code` has to be allowed as unsafe.
pub fn is_unsafe(code: &[TokenTree]) -> bool {
    let is_here = code.windows(2).any(|pair| {
        let is_item = ["fn", "impl", "trait"]
            .iter()
            .any(|it| is_word(&pair[1], it));
        is_word(&pair[0], "unsafe") && (is_item || braced(&pair[1]).is_some())
    });
    is_here
        || code
            .iter()
            .any(|it| group(it).is_some_and(|it| is_unsafe(&inside(it))))
}

/// Whether `code`, its tests left out, reads a clock of `std`.
pub fn reads_clock(code: &[TokenTree]) -> bool {
    let mut at = 0;
    while at < code.len() {
        let rest = &code[at..];
        if let Some(len) = tests_len(rest) {
            at += len;
            continue;
        }
        let is_path = rest.len() > 3 && rest[1..3].iter().all(|it| is_punct(it, ':'));
        let is_clock = ["Instant", "SystemTime"]
            .iter()
            .any(|it| is_word(&rest[0], it));
        let is_call = is_path && is_clock && is_word(&rest[3], "now");
        let is_method = rest.len() > 2
            && is_punct(&rest[0], '.')
            && is_word(&rest[1], "elapsed")
            && group(&rest[2]).is_some_and(|it| it.stream().is_empty());
        if is_call || is_method || group(&rest[0]).is_some_and(|it| reads_clock(&inside(it))) {
            return true;
        }
        at += 1;
    }
    false
}

impl Paths {
    pub fn of(code: &[TokenTree], children: &[&String]) -> Self {
        let mut paths = Paths::default();
        let mut words = BTreeSet::new();
        paths.read(code, children, &mut words);
        let is_used = |path: &Vec<String>| path.last().is_some_and(|it| words.contains(it));
        let (used, published) = paths
            .published
            .into_iter()
            .partition::<BTreeSet<_>, _>(is_used);
        paths.used.extend(used);
        paths.published = published;
        paths
    }

    /// `words` are those outside of `use` items.
    fn read(&mut self, code: &[TokenTree], children: &[&String], words: &mut BTreeSet<String>) {
        let mut at = 0;
        let mut is_public = false;
        while at < code.len() {
            let rest = &code[at..];
            at += 1;
            if let Some(len) = tests_len(rest) {
                at += len - 1;
            } else if is_word(&rest[0], "pub") {
                is_public = true;
                // Who may see it: no import.
                at += usize::from(rest.get(1).and_then(group).is_some());
                continue;
            } else if is_word(&rest[0], "use") {
                let len = rest.iter().position(|it| is_punct(it, ';'));
                let len = len.unwrap_or(rest.len());
                let found = if is_public {
                    &mut self.published
                } else {
                    &mut self.used
                };
                tree(&rest[1..len], &[], children, found);
                at += len - 1;
            } else if let Some(group) = group(&rest[0]) {
                self.read(&inside(group), children, words);
            } else if let TokenTree::Ident(word) = &rest[0] {
                words.insert(word.to_string());
                // Not the end of a path, nor after `x:`.
                let is_first = at < 3 || !code[at - 3..at - 1].iter().all(|it| is_punct(it, ':'));
                let len = path_len(rest);
                if is_first && len > 1 {
                    tree(&rest[..len], &[], children, &mut self.used);
                    at += len - 1;
                }
            }
            is_public = false;
        }
    }
}

/// The length of `#[cfg(test)] mod name { .. }`, if that is what `code` begins with.
fn tests_len(code: &[TokenTree]) -> Option<usize> {
    let [hash, attribute, item, _, body, ..] = code else {
        return None;
    };
    let is_test =
        group(attribute).is_some_and(|it| it.to_string().replace(' ', "") == "[cfg(test)]");
    let is_module = is_word(item, "mod") && braced(body).is_some();
    (is_punct(hash, '#') && is_test && is_module).then_some(5)
}

/// The length of the path `a::b::c` that `code` begins with.
fn path_len(code: &[TokenTree]) -> usize {
    let mut len = 1;
    while let [first, second, TokenTree::Ident(_), ..] = &code[len..]
        && is_punct(first, ':')
        && is_punct(second, ':')
    {
        len += 3;
    }
    len
}

/// Adds `a::b`, or each of `a::{b, c as d}` and `a::*`, with `prefix` in front.
fn tree(
    code: &[TokenTree],
    prefix: &[String],
    children: &[&String],
    found: &mut BTreeSet<Vec<String>>,
) {
    let branches = code.split(|it| is_punct(it, ','));
    for branch in branches.filter(|it| !it.is_empty()) {
        let mut path = prefix.to_vec();
        for token in branch {
            match token {
                TokenTree::Ident(word) if word == "as" => break,
                TokenTree::Ident(word) => path.push(word.to_string()),
                TokenTree::Punct(it) if it.as_char() == '*' => path.push("*".to_owned()),
                TokenTree::Group(group) => {
                    tree(&inside(group), &path, children, found);
                    path.clear();
                }
                _ => {}
            }
        }
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let Some(first) = path.first() else { continue };
        if children.contains(&first) {
            path.insert(0, "self".to_owned());
        } else if !["crate", "self", "super"].contains(&first.as_str()) {
            continue;
        }
        if path.len() > 1 {
            found.insert(path);
        }
    }
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(it) if it == word)
}

fn is_punct(token: &TokenTree, punct: char) -> bool {
    matches!(token, TokenTree::Punct(it) if it.as_char() == punct)
}

fn group(token: &TokenTree) -> Option<&Group> {
    match token {
        TokenTree::Group(group) => Some(group),
        _ => None,
    }
}

fn braced(token: &TokenTree) -> Option<&Group> {
    group(token).filter(|it| it.delimiter() == Delimiter::Brace)
}

fn inside(group: &Group) -> Vec<TokenTree> {
    group.stream().into_iter().collect()
}
