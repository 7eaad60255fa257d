//! The run as one HTML file, plots inside.

use std::io;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::report::{INTRODUCTION, NOTES, TITLE, Table, has_words, tables};
use super::results::Results;

const STYLE: &str = "\
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 13px; display: block; overflow-x: auto; }
td, th { padding: .15rem .6rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }
td:first-child, th:first-child, td.words, th.words { text-align: left; }
tr.missed td { background: #fdeee6; }
.plot { overflow-x: auto; margin: 1rem 0; }
svg { min-width: 640px; max-width: 100%; height: auto; }
@media (max-width: 700px) { svg { max-width: none; } }";

/// # Errors
/// If a plot cannot be drawn.
pub fn html(results: &Results) -> io::Result<String> {
    let plots = super::plot::all(results).map_err(|error| io::Error::other(error.to_string()))?;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (TITLE) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (TITLE) }
                p { (code(INTRODUCTION)) }
                p { "Machine: " (code(&results.setting.text())) "." }
                @for table in tables(results) {
                    h2 { (table.title) }
                    p { (code(table.before)) }
                    @for (_, svg) in plots.iter().filter(|plot| plot.0 == table.title) {
                        div.plot { (PreEscaped(svg)) }
                    }
                    (rows(&table))
                    p { (code(&table.after)) }
                }
                h2 { "Notes" }
                ul { @for note in NOTES { li { (code(note)) } } }
            }
        }
    };
    Ok(page.into_string())
}

fn rows(table: &Table) -> Markup {
    html! {
        table {
            thead { tr { @for column in table.columns { th.words[has_words(column)] { (column) } } } }
            tbody {
                @for row in &table.rows {
                    @let is_missed = row.last().is_some_and(|cell| cell == "**no**");
                    tr.missed[is_missed] {
                        @for (column, cell) in table.columns.iter().zip(row) {
                            td.words[has_words(column)] { (code(cell.trim_matches('*'))) }
                        }
                    }
                }
            }
        }
    }
}

/// Markdown's only marks here: code between backticks.
fn code(text: &str) -> Markup {
    html! {
        @for (number, part) in text.split('`').enumerate() {
            @if number % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(
            code("a < `b & c`").into_string(),
            "a &lt; <code>b &amp; c</code>"
        );
    }
}
