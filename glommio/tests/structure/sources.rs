//! Reads the modules of a crate and the paths in them, as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module by its path from the root, which is empty.
pub type Module = Vec<String>;

/// The modules of a crate, without its tests.
pub struct Crate {
    modules: BTreeMap<Module, Paths>,
}

/// The paths that a module's file names.
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
            .map(|(path, text)| (module_of(&path), code_of(&text)))
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

fn is_test(path: &Path) -> bool {
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

/// The code of a module, without comments and without the tests at its end.
fn code_of(text: &str) -> String {
    let mut code = without_comments(text);
    let tests = code.match_indices("#[cfg(test)]\n").find(|(at, it)| {
        let item = code[at + it.len()..].lines().next().unwrap_or_default();
        item.contains("mod ") && item.ends_with('{')
    });
    if let Some((at, _)) = tests {
        code.truncate(at);
    }
    code
}

impl Paths {
    /// The paths of `use` items, and all others that begin with `crate`, `self`, `super` or one of
    /// the `children`.
    pub fn of(code: &str, children: &[&String]) -> Self {
        let roots = ["crate", "self", "super"].map(String::from);
        let mut paths = Paths::default();
        for root in roots.iter().chain(children.iter().copied()) {
            for (at, _) in code.match_indices(&format!("{root}::")) {
                let before = code[..at].chars().next_back().unwrap_or(' ');
                let is_visibility = code[..at].ends_with("pub(in ");
                if before.is_alphanumeric() || before == '_' || before == ':' || is_visibility {
                    continue;
                }
                let prefix = if roots.contains(root) {
                    Vec::new()
                } else {
                    vec!["self".to_owned()]
                };
                let found = if is_published(&code[..at]) {
                    &mut paths.published
                } else {
                    &mut paths.used
                };
                tree(&mut code[at..].chars().peekable(), prefix, found);
            }
        }
        let rest = without_use_items(code);
        let words: BTreeSet<_> = rest
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .collect();
        let is_used = |path: &Vec<String>| path.last().is_some_and(|it| words.contains(&**it));
        let (used, published) = paths
            .published
            .into_iter()
            .partition::<BTreeSet<_>, _>(is_used);
        paths.used.extend(used);
        paths.published = published;
        paths
    }
}

/// Whether what follows upon `code` is the path of a `pub use`.
fn is_published(code: &str) -> bool {
    let item = code.rsplit([';', '}', '{']).next().unwrap_or_default();
    let mut words = item.split_whitespace().rev();
    words.next() == Some("use") && words.any(|word| word.starts_with("pub"))
}

fn without_use_items(code: &str) -> String {
    let is_use = |item: &&str| item.split_whitespace().all(|word| word != "use");
    code.split_inclusive(';').filter(is_use).collect()
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Reads `a::b`, `a::{b, c}`, `a as b` or `*`, and adds each path with `prefix` in front.
fn tree(chars: &mut Chars, mut path: Vec<String>, found: &mut BTreeSet<Vec<String>>) {
    loop {
        skip_space(chars);
        match chars.peek() {
            Some('{') => {
                chars.next();
                loop {
                    skip_space(chars);
                    match chars.peek() {
                        Some(',') => _ = chars.next(),
                        Some('}') | None => {
                            chars.next();
                            return;
                        }
                        Some(_) => tree(chars, path.clone(), found),
                    }
                }
            }
            Some('*') => {
                chars.next();
                path.push("*".to_owned());
                break;
            }
            _ => {
                let mut name = String::new();
                while let Some(&c) = chars.peek()
                    && (c.is_alphanumeric() || c == '_')
                {
                    name.push(c);
                    chars.next();
                }
                if name.is_empty() {
                    // A path of generic arguments or the like: what was read so far is a path.
                    chars.next();
                    break;
                }
                if name != "self" || path.is_empty() {
                    path.push(name);
                }
                let mut ahead = chars.clone();
                if (ahead.next(), ahead.next()) != (Some(':'), Some(':')) {
                    skip_rename(chars);
                    break;
                }
                *chars = ahead;
            }
        }
    }
    if path.len() > 1 {
        found.insert(path);
    }
}

fn skip_space(chars: &mut Chars) {
    while chars.peek().is_some_and(|c| c.is_whitespace()) {
        chars.next();
    }
}

fn skip_rename(chars: &mut Chars) {
    let mut ahead = chars.clone();
    skip_space(&mut ahead);
    if ahead.next() == Some('a') && ahead.next() == Some('s') && ahead.next() == Some(' ') {
        while ahead
            .peek()
            .is_some_and(|c| c.is_alphanumeric() || *c == '_')
        {
            ahead.next();
        }
        *chars = ahead;
    }
}

/// Comments and the contents of string literals are left out.
pub fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = if let Some(raw) = rest.strip_prefix("r#\"") {
            raw.find("\"#").map_or(rest.len(), |end| end + 5)
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("'\"'") {
            3
        } else if c == '"' {
            code.push_str("\"\"");
            string_len(rest)
        } else {
            code.push(c);
            c.len_utf8()
        };
        rest = &rest[skipped..];
    }
    code
}

/// The length of the string literal that `text` begins with.
fn string_len(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => _ = chars.next(),
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}
