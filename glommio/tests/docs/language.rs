//! Rules of language that a machine can check: `CONTRIBUTING.md` has all of them.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

use crate::{files_below, pages, root};

/// Words in one sentence.
const MOST_WORDS: usize = 40;

/// Not on a page for readers, and what to write there.
const PHRASES: [(&str, &str); 9] = [
    ("for ever", "forever"),
    ("in place of", "instead of"),
    ("nobody", "the condition, or who does it"),
    ("nothing of the kind", "what does happen"),
    ("tried and taken back", "what is, not how it came about"),
    ("are to be", "must be"),
    ("is to be", "must be"),
    ("some 50", "about 50"),
    ("and besides", "and"),
];

/// The sentences of Markdown: paragraphs and items of lists, without code, tables and headings.
fn sentences(markdown: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let mut is_code = false;
    for line in markdown.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let item = line.strip_prefix("- ").or_else(|| {
            let number = line.trim_start_matches(|it: char| it.is_ascii_digit());
            number
                .strip_prefix(". ")
                .filter(|_| number.len() < line.len())
        });
        let is_text = !(is_code || line.is_empty() || line.starts_with(['#', '|', '>', '<', '`']));
        if !is_text || item.is_some() {
            paragraphs.push(String::new());
        }
        // Code in a line that begins with some.
        if is_text || !is_code && line.starts_with('`') && !line.starts_with("```") {
            let paragraph = paragraphs.last_mut().expect("there is one");
            paragraph.push_str(item.unwrap_or(line));
            paragraph.push(' ');
        }
    }
    paragraphs.iter().flat_map(|it| split(&plain(it))).collect()
}

/// Without code and the targets of links.
fn plain(paragraph: &str) -> String {
    let code_is_one_word = (paragraph.split('`').enumerate())
        .map(|(index, piece)| if index % 2 == 0 { piece } else { "code" });
    let text: String = code_is_one_word.collect();
    let mut pieces = text.split("](");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain.push_str(piece.split_once(')').map_or(piece, |(_, rest)| rest));
    }
    // The text of a link may be a title: its bracket stays.
    plain.replace('*', "")
}

/// After what ends a sentence, and after colons and semicolons.
fn split(paragraph: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    for word in paragraph.split_whitespace() {
        let sentence = sentences.last_mut().expect("there is one");
        sentence.push_str(word);
        sentence.push(' ');
        if word
            .trim_end_matches([')', '"'])
            .ends_with(['.', '!', '?', ':', ';'])
        {
            sentences.push(String::new());
        }
    }
    sentences.retain(|it| !it.is_empty());
    sentences
}

/// What is wrong with a sentence.
fn faults(sentence: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let words = sentence.split_whitespace().count();
    if words > MOST_WORDS {
        faults.push(format!("{words} words: split it"));
    }
    if sentence.matches(", which").count() > 1 {
        faults.push("two clauses with \"which\": split it".to_owned());
    }
    faults
}

/// What is wrong with it on a page for readers.
fn faults_of_pages(sentence: &str) -> Vec<String> {
    let mut faults = faults(sentence);
    if sentence.starts_with("What ") && !sentence.trim_end().ends_with(['?', ':']) {
        faults.push("begins with \"What\": name the thing".to_owned());
    }
    if sentence.starts_with("Of ") || sentence.starts_with("To it ") {
        faults.push("begins with its object: subject, verb, object".to_owned());
    }
    let unquoted: String = sentence.split('"').step_by(2).collect();
    let letters = unquoted.to_lowercase();
    let words: Vec<_> = letters
        .split(|it: char| !it.is_alphanumeric())
        .filter(|it| !it.is_empty())
        .collect();
    let words = format!(" {} ", words.join(" "));
    let phrases = (PHRASES.iter()).filter(|(phrase, _)| words.contains(&format!(" {phrase} ")));
    faults.extend(phrases.map(|(phrase, better)| format!("{phrase:?}: write {better}")));
    faults
}

fn assert_none(faults: Vec<String>) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

fn in_file(path: &Path, text: &str, faults: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let told = |sentence: String| {
        let faults = faults(&sentence).into_iter();
        faults.map(move |fault| format!("{}: {fault}\n    {sentence}", path.display()))
    };
    sentences(text)
        .into_iter()
        .flat_map(told)
        .collect::<Vec<_>>()
}

#[test]
fn pages_keep_to_the_rules_of_language() {
    let faults = pages().into_iter().flat_map(|page| {
        let text = fs::read_to_string(root().join(&page)).expect("it is there");
        in_file(&page, &text, faults_of_pages)
    });
    assert_none(faults.collect());
}

/// The sources of the crates that programs use.
fn sources() -> Vec<PathBuf> {
    let mut sources = Vec::new();
    let packages = "glommio glommio-hyper glommio-h3 glommio-quic glommio-tokio simulated-kernel staged-wheel timelog";
    for package in packages.split(' ') {
        files_below(&root().join(package).join("src"), "rs", &mut sources).expect("it is there");
    }
    sources
}

#[test]
fn documentation_in_code_has_no_long_sentences() {
    let faults = sources().into_iter().flat_map(|path| {
        let text = fs::read_to_string(&path).expect("it is there");
        let mut documentation = String::new();
        for line in text.lines() {
            let line = line.trim_start();
            let comment = line.strip_prefix("///").or(line.strip_prefix("//!"));
            documentation.push_str(comment.unwrap_or_default());
            documentation.push('\n');
        }
        in_file(&path, &documentation, faults)
    });
    assert_none(faults.collect());
}

/// The strings in a source, each as a paragraph. A line that ends with a backslash goes on in the next one.
fn strings(tokens: TokenStream) -> String {
    let of_token = |token| match token {
        TokenTree::Group(group) => strings(group.stream()),
        TokenTree::Literal(it) if it.to_string().starts_with('"') => {
            it.to_string().replace("\\\n", "") + "\n\n"
        }
        _ => String::new(),
    };
    tokens.into_iter().map(of_token).collect()
}

#[test]
fn errors_and_lines_of_the_log_have_no_long_sentences() {
    let mut count = 0;
    let faults = sources().into_iter().flat_map(|path| {
        let text = fs::read_to_string(&path).expect("it is there");
        let texts = strings(text.parse().expect("it is Rust"));
        count += texts.matches("\n\n").count();
        in_file(&path, &texts, faults)
    });
    assert_none(faults.collect());
    assert!(count > 2000, "only {count} strings were found");
}

/// Words with a sense of their own here, that a reader may not know or may take for something else.
#[test]
fn own_words_are_in_the_glossary() {
    let words = "budget,driver,in flight,latency,mesh,ordered map,park,placement,planted defect,reactor,round,shard,shares,slack,slice,turn";
    let glossary = fs::read_to_string(root().join("docs/glossary.md")).expect("it is there");
    for word in words.split(',') {
        assert!(glossary.contains(&format!("\n| {word} ")), "{word}");
    }
}

#[test]
fn a_fault_of_each_kind_is_seen() {
    let seen = |text: &str| in_file(Path::new("page"), text, faults_of_pages).len();
    assert_eq!(seen("It is short. So is this."), 0);
    assert_eq!(seen(&"word ".repeat(41)), 1);
    assert_eq!(
        seen(&format!("- {}\n- {}", "a ".repeat(40), "b ".repeat(40))),
        0
    );
    assert_eq!(seen(&format!("```text\n{}\n```", "word ".repeat(99))), 0);
    assert_eq!(seen("A, which b, which c."), 1);
    assert_eq!(seen("What waits is woken."), 1);
    assert_eq!(
        seen("What waits? [What files guarantee](files.md) says it."),
        0
    );
    assert_eq!(seen("It waits\nfor ever."), 1);
    assert_eq!(seen("Of a million timers one was late."), 1);
    assert_eq!(seen("`for ever` is code, for everybody."), 0);
}
