//! The verdict as a table: a line for each promise, with what it means.
//!
//! On a narrow screen each line becomes a block of its own, in which every cell says by itself what it
//! is: the style sheet writes the attribute `data-label` above it.

use crate::meaning;
use crate::record::{Record, Row, Standing};
use crate::words::grouped;

use super::markup::Markup;

/// The lines of all records, the promises of the first one first.
pub(super) fn table(markup: &mut Markup, records: &[Record]) {
    let mut promises: Vec<&str> = Vec::new();
    for row in records.iter().flat_map(|record| &record.rows) {
        if !promises.contains(&&*row.invariant) {
            promises.push(&row.invariant);
        }
    }
    let class = if records.len() > 1 {
        "stack wide"
    } else {
        "stack"
    };
    markup.element("table", &[("class", class), ("role", "table")], |table| {
        table.element("thead", &[("role", "rowgroup")], |head| {
            heads(head, records)
        });
        table.element("tbody", &[("role", "rowgroup")], |body| {
            for promise in promises {
                body.element("tr", &[("role", "row")], |line| {
                    line.element("th", &[("scope", "row"), ("role", "rowheader")], |cell| {
                        cell.text(promise);
                        if let Some(meaning) = meaning::of(promise) {
                            cell.leaf("small", &[], meaning);
                        }
                    });
                    for record in records {
                        let mut rows = record.rows.iter();
                        let row = rows.find(|row| row.invariant == promise);
                        let label = if records.len() > 1 {
                            &*record.timer_queue
                        } else {
                            COLUMNS[0]
                        };
                        cells(line, row, label);
                    }
                });
            }
        });
    });
}

/// What there is to be said beside the table, if anything.
pub(super) fn words(markup: &mut Markup, class: &str, title: &str, words: &[String]) {
    if words.is_empty() {
        return;
    }
    markup.element("div", &[("class", class)], |div| {
        div.leaf("h3", &[], title);
        div.element("ul", &[], |list| {
            for word in words {
                list.leaf("li", &[], word);
            }
        });
    });
}

/// The sign and the word for how a promise came out.
pub(super) fn standing(markup: &mut Markup, standing: Standing) {
    let (class, sign, word) = match standing {
        Standing::Pass => ("badge good", "✓", "pass"),
        Standing::Fail => ("badge bad", "✗", "FAIL"),
        Standing::NotExercised => ("badge", "–", "not exercised"),
    };
    markup.element("span", &[("class", class)], |badge| {
        badge.leaf("span", &[("aria-hidden", "true")], sign);
        badge.text(format_args!(" {word}"));
    });
}

fn heads(head: &mut Markup, records: &[Record]) {
    let column = [("scope", "col"), ("role", "columnheader")];
    if records.len() > 1 {
        head.element("tr", &[("role", "row")], |row| {
            row.leaf("td", &[("role", "cell")], "");
            for record in records {
                let group = [
                    ("scope", "colgroup"),
                    ("colspan", "4"),
                    ("role", "columnheader"),
                ];
                row.leaf("th", &group, &record.timer_queue);
            }
        });
    }
    head.element("tr", &[("role", "row")], |row| {
        row.leaf("th", &column, "promise");
        for _ in records {
            for name in COLUMNS {
                row.leaf("th", &column, name);
            }
        }
    });
}

fn cells(line: &mut Markup, row: Option<&Row>, label: &str) {
    let unknown = Row::default();
    let row = row.unwrap_or(&unknown);
    line.element(
        "td",
        &[
            ("class", "outcome"),
            ("data-label", label),
            ("role", "cell"),
        ],
        |cell| {
            standing(cell, row.standing);
        },
    );
    let texts = [grouped(row.checks), row.worst.clone(), row.bound.clone()];
    for (label, text) in COLUMNS[1..].iter().zip(texts) {
        line.leaf("td", &[("data-label", label), ("role", "cell")], text);
    }
}

const COLUMNS: [&str; 4] = ["verdict", "checks", "worst", "bound"];
