//! One form for signatures that are the same to a program.
//!
//! - A trait implementation is one line: its methods follow from the trait. Its associated types have lines of their own.
//! - `async fn` is a function that returns `impl Future`, and `glommio::Result` is written out.
//! - Types are named by their last segment: a private path is not part of the API. The paths of items stay.
//! - Lifetimes other than `'static` are left out, and so are `Sized`, `+ use<..>`, and the traits that no code names (`Freeze`,
//!   `UnwindSafe`, `StructuralPartialEq` and `Drop`) or that a type does not implement.
//! - A type inside its own methods is `Self`.

use std::collections::BTreeSet;

/// The items of a listing by the crate public-api, of which those of an `impl` follow it.
pub fn items(lines: &[String]) -> BTreeSet<String> {
    let mut items = BTreeSet::new();
    let mut is_of_trait = false;
    for line in lines {
        if line.starts_with("impl") {
            let header = header(line);
            is_of_trait = header.is_some();
            items.extend(header.filter(|it| is_named(it)));
        } else if is_of_trait && is_member(line) {
            if line.starts_with("pub type ") {
                items.insert(signature(line));
            }
        } else {
            is_of_trait = false;
            // A private module, of which the listing takes the re-exported function's name for a path.
            if !line.contains("glommio::prelude::executor::") {
                items.insert(signature(line));
            }
        }
    }
    items
}

/// Whether the line is an item of an `impl`, if it follows one.
fn is_member(line: &str) -> bool {
    let words = [
        "pub fn ",
        "pub async fn ",
        "pub type ",
        "pub const fn ",
        "pub unsafe fn ",
        "pub const ",
    ];
    words.iter().any(|it| line.starts_with(it)) && !is_free(line)
}

/// Whether the item belongs to a module: no segment of its path is a type.
fn is_free(line: &str) -> bool {
    line.split_once("fn ").is_some_and(|(_, item)| {
        let path = generics_removed(&item[..path_end(item)]);
        path.starts_with("glommio::") && !path.contains(char::is_uppercase)
    })
}

/// That a trait is implemented, `None` for an inherent `impl`.
fn header(line: &str) -> Option<String> {
    let line = plain(line);
    trait_and_type(&line).is_some().then_some(line)
}

fn trait_and_type(header: &str) -> Option<(&str, &str)> {
    let rest = header.strip_prefix("impl")?;
    let rest = match rest.starts_with('<') {
        true => &rest[closing(rest)? + 1..],
        false => rest,
    };
    rest.trim().split_once(" for ")
}

/// Whether code can depend on the implementation.
fn is_named(header: &str) -> bool {
    let unnamed = [
        "Freeze",
        "UnsafeUnpin",
        "UnwindSafe",
        "RefUnwindSafe",
        "StructuralPartialEq",
        "Drop",
    ];
    let Some((of, to)) = trait_and_type(header) else {
        return false;
    };
    // A type may get what it did not have.
    !unnamed.contains(&of) && !of.starts_with('!') && !to.contains("PinnedFieldsOf")
}

/// An item whose path stays as it is, while types in its signature are named by their last segment.
fn signature(line: &str) -> String {
    let at = line.find("glommio::").unwrap_or(0);
    let (words, item) = line.split_at(at);
    let end = (item.find(['(', '<', ' ', ':']).map(|_| path_end(item))).unwrap_or(item.len());
    let (path, rest) = item.split_at(end);
    let path = generics_removed(path);
    let of_type = path.rsplit_once("::").map_or("", |it| it.0);
    let of_type = of_type.rsplit("::").next().unwrap_or(of_type);
    let is_async = words.contains("async ");
    let words = words.replace("async ", "").replace("const fn", "fn");
    let mut rest = plain(rest);
    if is_async {
        rest = match split_output(&rest) {
            Some((arguments, output)) => format!("{arguments} -> impl Future<Output = {output}>"),
            None => format!("{rest} -> impl Future<Output = ()>"),
        };
    }
    // Private fields of a tuple.
    if words.ends_with("struct ") {
        for fields in ["(_)", "(_, _)"] {
            rest = rest.replace(fields, "");
        }
    }
    let rest = if of_type.starts_with(char::is_uppercase) {
        self_for(&rest, of_type)
    } else {
        rest
    };
    format!("{words}{path}{rest}")
}

/// Where the path at the beginning of `item` ends, generics of its types included.
fn path_end(item: &str) -> usize {
    let mut depth = 0_usize;
    let bytes = item.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            // Those of a function are part of its signature.
            b'<' if depth == 0 && !item[at..].contains(">::") => return at,
            b'<' if depth == 0 && !is_type_at(item, at) => return at,
            b'<' => depth += 1,
            b'>' => depth -= 1,
            b'(' | b' ' | b'{' if depth == 0 => return at,
            b':' if depth == 0 && bytes.get(at + 1) == Some(&b' ') => return at,
            _ => {}
        }
    }
    item.len()
}

/// Whether the name before the bracket at `at` is that of a type.
fn is_type_at(item: &str, at: usize) -> bool {
    let name = item[..at].rsplit("::").next().unwrap_or("");
    name.starts_with(char::is_uppercase)
}

fn generics_removed(path: &str) -> String {
    let mut depth = 0_usize;
    let mut plain = String::new();
    for character in path.chars() {
        match character {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ if depth == 0 => plain.push(character),
            _ => {}
        }
    }
    plain
}

/// The index of the bracket that closes the one at the beginning of `text`.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut before = ' ';
    for (at, character) in text.char_indices() {
        match character {
            '<' | '(' | '[' => depth += 1,
            '>' if before == '-' => {}
            '>' | ')' | ']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
        before = character;
    }
    None
}

/// Arguments with what comes before them, and output with bounds.
fn split_output(rest: &str) -> Option<(&str, &str)> {
    let open = rest.find('(')?;
    let close = open + closing(&rest[open..])?;
    let (arguments, output) = rest.split_at(close + 1);
    Some((arguments, output.strip_prefix(" -> ")?))
}

/// Types by their last segment, without lifetimes, `Sized` and the alias of results.
fn plain(text: &str) -> String {
    let mut text = without_lifetimes(&glommio_results(text));
    for (from, to) in [
        (" + core::marker::Sized", ""),
        ("core::marker::Sized + ", ""),
        (": core::marker::Sized", ""),
        (" + ?core::marker::Sized", ": ?Sized"),
        (
            "std::io::error::Result<",
            "core::result::Result<std::io::error::Error, ",
        ),
    ] {
        text = text.replace(from, to);
    }
    last_segments(&without_use(&text))
}

/// What a returned type does not borrow is no loss to a program.
fn without_use(text: &str) -> String {
    let Some((before, after)) = text.split_once(" + use") else {
        return text.to_owned();
    };
    let after = match closing(after) {
        Some(close) if after.starts_with('<') => &after[close + 1..],
        _ => after,
    };
    format!("{before}{}", without_use(after))
}

fn last_segments(text: &str) -> String {
    let mut plain = String::new();
    let mut segment = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character.is_alphanumeric() || character == '_' {
            segment.push(character);
        } else if character == ':' && characters.peek() == Some(&':') && !segment.is_empty() {
            characters.next();
            // `Self::Item` and the like stay.
            if segment.starts_with(char::is_uppercase) {
                plain.push_str(&segment);
                plain.push_str("::");
            }
            segment.clear();
        } else {
            plain.push_str(&segment);
            segment.clear();
            plain.push(character);
        }
    }
    plain + &segment
}

/// `glommio::Result<A, B>` as `core::result::Result<A, GlommioError<B>>`.
fn glommio_results(text: &str) -> String {
    const ALIAS: &str = "glommio::Result";
    let Some(at) = text.find("glommio::Result<") else {
        return text.to_owned();
    };
    let open = at + ALIAS.len();
    let Some(close) = closing(&text[open..]).map(|it| open + it) else {
        return text.to_owned();
    };
    let arguments = &text[open + 1..close];
    let mut depth = 0_usize;
    let comma = arguments.char_indices().find_map(|(at, it)| {
        match it {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => return Some(at),
            _ => {}
        }
        None
    });
    let Some(comma) = comma else {
        return text.to_owned();
    };
    let (value, item) = (&arguments[..comma], arguments[comma + 1..].trim());
    let written_out = format!("core::result::Result<{value}, glommio::GlommioError<{item}>>");
    glommio_results(&format!(
        "{}{written_out}{}",
        &text[..at],
        &text[close + 1..]
    ))
}

fn without_lifetimes(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\'') {
        plain.push_str(before);
        let end = after.find(|it: char| !it.is_alphanumeric() && it != '_');
        let (name, after) = after.split_at(end.unwrap_or(after.len()));
        rest = after;
        if name == "static" {
            plain.push_str("'static");
            continue;
        }
        if let Some(before) = plain.strip_suffix(" + ") {
            plain.truncate(before.len());
            continue;
        }
        // A list goes on, a reference, or a bound.
        for separator in [": ", ", ", " + ", " "] {
            if let Some(after) = rest.strip_prefix(separator) {
                rest = after;
                break;
            }
        }
    }
    plain.push_str(rest);
    for (from, to) in [("<>", ""), (", >", ">")] {
        plain = plain.replace(from, to);
    }
    plain
}

/// `Self` for the type `name` with its own generics.
fn self_for(text: &str, name: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let is_word = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
        let after = &rest[at + name.len()..];
        let is_whole = !is_word(rest[..at].chars().next_back()) && !is_word(after.chars().next());
        plain.push_str(&rest[..at]);
        rest = after;
        if !is_whole {
            plain.push_str(name);
            continue;
        }
        plain.push_str("Self");
        if rest.starts_with('<')
            && let Some(close) = closing(rest)
        {
            rest = &rest[close + 1..];
        }
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(lines: &[&str]) -> Vec<String> {
        let lines: Vec<_> = lines.iter().map(|it| (*it).to_owned()).collect();
        items(&lines).into_iter().collect()
    }

    #[test]
    fn the_same_to_a_program_is_the_same_line() {
        for (one, other) in [
            (
                "pub async fn glommio::sync::Gate::close(&self) -> glommio::Result<(), ()>",
                "pub fn glommio::sync::Gate::close(&self) -> impl core::future::future::Future<Output = core::result::Result<(), glommio::GlommioError<()>>>",
            ),
            (
                "impl<'a, T> core::ops::deref::Deref for glommio::sync::Guard<'a, T>",
                "impl<T> core::ops::deref::Deref for glommio::sync::Guard<'_, T>",
            ),
            (
                "pub fn glommio::Builder::name(self, &str) -> Self",
                "pub fn glommio::Builder::name(self, &str) -> glommio::Builder",
            ),
            (
                "pub fn glommio::f(glommio::executor::stall::Detection<'_>)",
                "pub fn glommio::f(glommio::Detection<'_>)",
            ),
        ] {
            assert_eq!(normal(&[one]), normal(&[other]));
        }
    }

    #[test]
    fn other_types_arguments_and_paths_differ() {
        let line = "pub fn glommio::net::S<B>::read(&self, u32) -> glommio::Result<u8, ()>";
        for other in [
            "pub fn glommio::net::S<B>::read(&self, u64) -> glommio::Result<u8, ()>",
            "pub fn glommio::net::S<B>::read(&self, u32) -> glommio::Result<u16, ()>",
            "pub fn glommio::net::S<B>::read(&self, u32) -> glommio::Result<u8, u8>",
            "pub fn glommio::net::T<B>::read(&self, u32) -> glommio::Result<u8, ()>",
            "pub fn glommio::io::S<B>::read(&self, u32) -> glommio::Result<u8, ()>",
            "pub async fn glommio::net::S<B>::read(&self, u32) -> glommio::Result<u8, ()>",
            "pub fn glommio::net::S<B>::read(&mut self, u32) -> glommio::Result<u8, ()>",
        ] {
            assert_ne!(normal(&[line]), normal(&[other]), "{other}");
        }
    }

    #[test]
    fn a_function_of_a_module_does_not_belong_to_the_type_before_it() {
        let lines = [
            "impl core::future::future::Future for glommio::Timer",
            "pub fn glommio::Timer::poll(core::pin::Pin<&mut Self>) -> u8",
            "impl<T> core::fmt::Debug for glommio::Task<T>",
            "pub fn glommio::Task<T>::fmt(&self) -> glommio::Result<T, ()>",
            "pub fn glommio::timer::sleep<T>(T)",
            "pub fn glommio::executor() -> glommio::ExecutorProxy",
        ];
        let expected = [
            "impl Future for Timer",
            "impl<T> Debug for Task<T>",
            "pub fn glommio::executor() -> ExecutorProxy",
            "pub fn glommio::timer::sleep<T>(T)",
        ];
        assert_eq!(normal(&lines), expected);
    }

    #[test]
    fn a_trait_is_one_line_with_its_types() {
        let lines = [
            "impl core::future::future::Future for glommio::Timer",
            "pub type glommio::Timer::Output = u8",
            "pub fn glommio::Timer::poll(core::pin::Pin<&mut Self>) -> u8",
            "impl glommio::Timer",
            "pub fn glommio::Timer::reset(&mut self)",
            "impl core::ops::drop::Drop for glommio::Timer",
            "pub fn glommio::Timer::drop(&mut self)",
        ];
        let expected = [
            "impl Future for Timer",
            "pub fn glommio::Timer::reset(&mut self)",
            "pub type glommio::Timer::Output = u8",
        ];
        assert_eq!(normal(&lines), expected);
    }
}
