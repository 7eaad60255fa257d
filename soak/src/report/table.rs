//! A plain table of figures: a name and some cells in each row.

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

/// A row; what `note` says stands small under its name.
pub(super) fn row(rows: &mut Markup, name: &str, note: Option<&str>, cells: &[impl Display]) {
    rows.element("tr", &[], |row| {
        row.element("th", &[("scope", "row")], |head| {
            head.text(name);
            if let Some(note) = note {
                head.leaf("small", &[], note);
            }
        });
        for cell in cells {
            row.leaf("td", &[], cell);
        }
    });
}

/// Around what may be wider than a phone, so that it scrolls by itself.
pub(super) fn scrolling(markup: &mut Markup, what: &str, content: impl FnOnce(&mut Markup)) {
    // Those who have no pointer scroll what has the focus.
    let focusable = [("class", "scroll"), ("tabindex", "0"), ("role", "region")];
    let attributes = [&focusable[..], &[("aria-label", what)]].concat();
    markup.element("div", &attributes, content);
}
