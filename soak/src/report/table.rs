//! Tables: a name and some cells in each row. On a narrow screen they scroll by themselves.

use maud::{Markup, html};

/// What stands in the rows of a table: a name, and the cells beside it.
pub(super) type Cells = (Markup, Vec<Markup>);

/// A table with its heads, the first of which stands over the names of the rows.
pub(super) fn table<'a>(
    heads: impl IntoIterator<Item = &'a str>,
    rows: impl IntoIterator<Item = Cells>,
) -> Markup {
    html! {
        // Those who have no pointer scroll what has the focus.
        div.scroll tabindex="0" {
            table {
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
}

/// A row of plain texts.
pub(super) fn texts(name: &str, cells: impl IntoIterator<Item = String>) -> Cells {
    let cells = cells.into_iter().map(|cell| html! { (cell) });
    (html! { (name) }, cells.collect())
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
