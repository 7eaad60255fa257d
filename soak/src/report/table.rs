//! Tables: plain ones with a name and some figures in each row, and such as fall apart into blocks.
//!
//! On a narrow screen each row of the latter is a block in which every cell says by itself what it is:
//! the style sheet writes the attribute `data-label` above it. Rows that are displayed as blocks are no
//! rows any more to those who listen to the page, so their roles are given as well.

use std::fmt::Display;

use super::markup::Markup;

/// The table with its heads, the first of which stands over the names of the rows.
pub(super) fn table(markup: &mut Markup, heads: &[&str], rows: impl FnOnce(&mut Markup)) {
    markup.element("table", &[("class", "figures")], |table| {
        table.element("thead", &[], |head| {
            head.element("tr", &[], |row| {
                for name in heads {
                    row.leaf("th", &[("scope", "col")], name);
                }
            });
        });
        table.element("tbody", &[], rows);
    });
}

/// A row of it.
pub(super) fn row(rows: &mut Markup, name: &str, cells: &[impl Display]) {
    rows.element("tr", &[], |row| {
        row.leaf("th", &[("scope", "row")], name);
        for cell in cells {
            row.leaf("td", &[], cell);
        }
    });
}

/// A table whose rows become blocks where it is narrow.
pub(super) fn stack(
    markup: &mut Markup,
    class: &str,
    heads: impl FnOnce(&mut Markup),
    rows: impl FnOnce(&mut Markup),
) {
    markup.element("table", &[("class", class), ("role", "table")], |table| {
        table.element("thead", &[("role", "rowgroup")], heads);
        table.element("tbody", &[("role", "rowgroup")], rows);
    });
}

/// A row of such a table, in its head or under it.
pub(super) fn stack_row(rows: &mut Markup, cells: impl FnOnce(&mut Markup)) {
    rows.element("tr", &[("role", "row")], cells);
}

/// The heads of its columns.
pub(super) fn stack_heads<'a>(row: &mut Markup, names: impl IntoIterator<Item = &'a str>) {
    for name in names {
        let attributes = [("scope", "col"), ("role", "columnheader")];
        row.leaf("th", &attributes, name);
    }
}

/// The name of a row, with a sentence under it.
pub(super) fn stack_name(row: &mut Markup, name: &str, note: Option<&str>) {
    let attributes = [("scope", "row"), ("role", "rowheader")];
    row.element("th", &attributes, |head| {
        head.text(name);
        if let Some(note) = note {
            head.leaf("small", &[], note);
        }
    });
}

/// A cell in the column `label`.
pub(super) fn stack_cell(row: &mut Markup, label: &str, text: impl Display) {
    row.leaf("td", &[("data-label", label), ("role", "cell")], text);
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
pub(super) fn scrolling(markup: &mut Markup, what: &str, content: impl FnOnce(&mut Markup)) {
    // Those who have no pointer scroll what has the focus.
    let focusable = [("class", "scroll"), ("tabindex", "0"), ("role", "region")];
    let attributes = [&focusable[..], &[("aria-label", what)]].concat();
    markup.element("div", &attributes, content);
}
