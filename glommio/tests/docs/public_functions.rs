//! Every public function is called in an example: in its own documentation, in that of its type or
//! module, or in that of another method of its type in the same file; anywhere in the file, if no other
//! function in it has that name.
//!
//! The source is read as text, in the form that rustfmt gives it. What macros write is not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::root;

/// The files of the library by their paths, without tests.
pub(crate) fn sources() -> BTreeMap<String, String> {
    let source = root().join("glommio/src");
    let mut found = BTreeMap::new();
    let mut folders = vec![source.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("an entry of it").path();
            if path.is_dir() {
                if !path.ends_with("tests") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") {
                let name = path.strip_prefix(&source).expect("below it");
                let text = fs::read_to_string(&path).expect("text");
                found.insert(name.to_string_lossy().into_owned(), text);
            }
        }
    }
    found
}

/// The file of the module `name` that is declared in `parent`.
fn file_of(sources: &BTreeMap<String, String>, parent: &str, name: &str) -> Option<String> {
    let parent = Path::new(parent);
    let is_folder = parent.ends_with("mod.rs") || parent.ends_with("lib.rs");
    let folder = if is_folder {
        parent.parent().unwrap_or(Path::new("")).to_owned()
    } else {
        parent.with_extension("")
    };
    let files = [format!("{name}.rs"), format!("{name}/mod.rs")].map(|it| folder.join(it));
    let mut paths = files.iter().map(|it| it.to_string_lossy().into_owned());
    paths.find(|path| sources.contains_key(path))
}

/// What users can name, and the top-level modules in which it is defined.
#[derive(Default)]
pub(crate) struct Exported {
    pub(crate) names: BTreeSet<String>,
    pub(crate) modules: BTreeSet<String>,
}

/// Collects from `file`, a public module, and from the public modules in it.
pub(crate) fn collect(sources: &BTreeMap<String, String>, file: &str, exported: &mut Exported) {
    let mut is_hidden = false;
    let mut reexport = None::<String>;
    for line in sources[file].lines() {
        if let Some(text) = &mut reexport {
            text.push_str(line);
        } else if line.starts_with("#[") {
            is_hidden |= line.contains("doc(hidden)");
            continue;
        } else if let Some(name) = line
            .strip_prefix("pub mod ")
            .and_then(|it| it.strip_suffix(';'))
            && !is_hidden
        {
            if file == "lib.rs" {
                exported.modules.insert(name.to_owned());
            }
            let child = file_of(sources, file, name).expect("the file of a module");
            collect(sources, &child, exported);
        } else if line.starts_with("pub use ") && !is_hidden {
            reexport = Some(line.to_owned());
        } else if let Some(name) = definition(line) {
            exported.names.insert(name.to_owned());
        }
        if let Some(text) = reexport.take_if(|text| text.ends_with(';')) {
            let words: Vec<_> = text.split(|it: char| !is_word(it)).collect();
            exported.names.extend(words.iter().map(|&it| it.to_owned()));
            if let (true, [_, _, "crate", "", module, ..]) = (file == "lib.rs", &words[..]) {
                exported.modules.insert((*module).to_owned());
            }
        }
        is_hidden = false;
    }
}

pub(crate) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The name of the public item that begins in `line`, unindented.
pub(crate) fn definition(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let rest = ["async ", "const ", "unsafe "]
        .iter()
        .fold(rest, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
    let rest = ["fn ", "struct ", "enum ", "trait ", "type "]
        .iter()
        .find_map(|word| rest.strip_prefix(word))?;
    rest.split(|it| !is_word(it)).next()
}

/// The type of the inherent `impl` that begins in `line`.
pub(crate) fn implemented(line: &str) -> Option<&str> {
    let rest = line
        .strip_prefix("impl")
        .filter(|_| !line.contains(" for "))?;
    let mut depth = 0;
    let is_before = |it: char| {
        depth += i32::from(it == '<') - i32::from(it == '>');
        depth > 0 || it == '>' || it == ' '
    };
    let rest = rest.trim_start_matches(is_before);
    rest.split(|it| !is_word(it)).next()
}

/// The code in documentation: what stands between fences.
fn code(docs: &str) -> String {
    docs.split("```").skip(1).step_by(2).collect()
}

/// Whether `code` calls `function`, by whatever path.
fn calls(code: &str, function: &str) -> bool {
    code.match_indices(function).any(|(at, _)| {
        let rest = &code[at + function.len()..];
        !code[..at].ends_with(is_word) && (rest.starts_with('(') || rest.starts_with("::<"))
    })
}

/// A public function in `file`.
struct Function {
    file: String,
    /// Empty for one outside of a type.
    of_type: String,
    name: String,
    docs: String,
}

/// The functions that users can call, the documentation of types by file and name, and that of the
/// modules by file.
fn functions(
    sources: &BTreeMap<String, String>,
) -> (Vec<Function>, BTreeMap<(String, String), String>) {
    let mut exported = Exported::default();
    collect(sources, "lib.rs", &mut exported);
    exported.modules.insert("lib".to_owned());
    let mut functions = Vec::new();
    let mut docs_of = BTreeMap::new();
    for (file, text) in sources {
        let top = file.split(['/', '.']).next().unwrap_or(file);
        if !exported.modules.contains(top) {
            continue;
        }
        let (mut docs, mut of_module, mut of_type) = (String::new(), String::new(), None);
        let mut is_hidden = false;
        for line in text.lines() {
            let trimmed = line.trim_start();
            if let Some(text) = trimmed.strip_prefix("//!") {
                of_module.extend([text, "\n"]);
            } else if let Some(text) = trimmed.strip_prefix("///") {
                docs.extend([text, "\n"]);
            } else if trimmed.starts_with("#[") {
                is_hidden |= trimmed.contains("doc(hidden)");
            } else {
                if line.starts_with("mod tests {") {
                    break;
                }
                if line.starts_with("impl") {
                    of_type = implemented(line).map(str::to_owned);
                } else if line.starts_with('}') {
                    of_type = None;
                }
                let function = |of_type: &str, name: &str| Function {
                    file: file.clone(),
                    of_type: of_type.to_owned(),
                    name: name.to_owned(),
                    docs: docs.clone(),
                };
                let method = line.strip_prefix("    ").filter(|it| !it.starts_with(' '));
                if let (Some(item), Some(of_type)) = (method, &of_type)
                    && !is_hidden
                    && item.contains("fn ")
                    && let Some(name) = definition(item)
                    && exported.names.contains(of_type)
                {
                    functions.push(function(of_type, name));
                }
                if let Some(name) = definition(line)
                    && exported.names.contains(name)
                {
                    if line.contains("fn ") {
                        functions.push(function("", name));
                    } else {
                        docs_of.insert((file.clone(), name.to_owned()), docs.clone());
                    }
                }
                docs.clear();
                is_hidden = false;
            }
        }
        docs_of.insert((file.clone(), String::new()), of_module);
    }
    (functions, docs_of)
}

/// The functions that no example calls, as `file Type::function`.
fn without_example() -> BTreeSet<String> {
    let (functions, docs_of) = functions(&sources());
    assert!(functions.len() > 300, "only {} were found", functions.len());
    let is_shown = |function: &Function| {
        let Function {
            file,
            of_type,
            name,
            docs,
        } = function;
        let here = || functions.iter().filter(|it| it.file == *file);
        let is_sole = here().filter(|it| it.name == *name).count() == 1;
        let siblings = here().filter(|it| is_sole || it.of_type == *of_type);
        let of_types = docs_of.iter().filter(|((place, it), _)| match &it[..] {
            "" => place == file,
            it => it == of_type || is_sole && place == file,
        });
        let by_name = siblings.map(|it| &it.docs).chain(of_types.map(|it| it.1));
        // By its path it is told from others of its name.
        let path = format!(
            "{}::{name}",
            if of_type.is_empty() {
                "glommio"
            } else {
                of_type
            }
        );
        let of_types = docs_of.iter().filter(|((place, _), _)| place == file);
        let mut by_path = here().map(|it| &it.docs).chain(of_types.map(|it| it.1));
        docs.contains("```") || by_path.any(|docs| calls(&code(docs), &path)) || { by_name }
            .any(|docs| calls(&code(docs), name))
    };
    (functions.iter())
        .filter(|function| !is_shown(function))
        .map(|it| match &it.of_type[..] {
            "" => format!("{} {}", it.file, it.name),
            of_type => format!("{} {of_type}::{}", it.file, it.name),
        })
        .collect()
}

#[test]
fn every_public_function_has_an_example() {
    let missing = without_example();
    assert!(missing.is_empty(), "no example calls {missing:#?}");
}

#[test]
fn the_source_is_understood() {
    assert_eq!(definition("pub async fn a<T>(b: T)"), Some("a"));
    assert_eq!(definition("pub(crate) fn a()"), None);
    assert_eq!(definition("pub struct A<T> {"), Some("A"));
    let generic = implemented("impl<T: Into<A<B>>, const N: usize> C<T> {");
    assert_eq!(generic, Some("C"));
    assert_eq!(implemented("impl D {"), Some("D"));
    assert_eq!(implemented("impl<T> E for F<T> {"), None);
    let docs = "a()\n```\nx.b::<u8>(); c(1)\n```\nd()";
    assert!(calls(&code(docs), "b") && calls(&code(docs), "c"));
    assert!(!calls(&code(docs), "a") && !calls(&code(docs), "d"));
    assert!(!calls("abc()", "bc"));
}
