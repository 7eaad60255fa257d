//! Tables: plain ones with a name and some figures in each row, and such as fall apart into blocks.
//!
//! On a narrow screen each row of the latter is a block in which every cell says by itself what it
//! is: the style sheet writes the attribute `data-label` above it. Rows that are displayed as
//! blocks are no rows any more to those who listen to the page, so their roles are given as well.

use maud::{Markup, html};

/// A table with its heads, the first of which stands over the names of the rows.
pub(super) fn table<'a>(
    heads: &[&str],
    rows: impl IntoIterator<Item = (&'a str, Vec<String>)>,
) -> Markup {
    html! {
        table.figures {
            thead { tr { @for head in heads { th scope="col" { (head) } } } }
            tbody {
                @for (name, cells) in rows {
                    tr {
                        th scope="row" { (name) }
                        @for cell in cells { td { (cell) } }
                    }
                }
            }
        }
    }
}

/// A table whose rows become blocks where it is narrow.
pub(super) fn stack(class: &str, heads: Markup, rows: Markup) -> Markup {
    html! {
        table class=(class) role="table" {
            thead role="rowgroup" { (heads) }
            tbody role="rowgroup" { (rows) }
        }
    }
}

/// The heads of its columns.
pub(super) fn stack_heads<'a>(names: impl IntoIterator<Item = &'a str>) -> Markup {
    html! {
        tr role="row" {
            @for name in names { th scope="col" role="columnheader" { (name) } }
        }
    }
}

/// The name of a row, with a sentence under it.
pub(super) fn stack_name(name: &str, note: Option<&str>) -> Markup {
    html! {
        th scope="row" role="rowheader" {
            (name)
            @if let Some(note) = note { small { (note) } }
        }
    }
}

/// A cell in the column `label`.
pub(super) fn stack_cell(label: &str, text: &str) -> Markup {
    html! { td data-label=(label) role="cell" { (text) } }
}

/// Each of `names` once, where it first comes.
pub(super) fn each_once<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

/// Around what may be wider than a phone, so that it scrolls by itself.
pub(super) fn scrolling(what: &str, content: Markup) -> Markup {
    // Those who have no pointer scroll what has the focus.
    html! { div.scroll tabindex="0" role="region" aria-label=(what) { (content) } }
}
