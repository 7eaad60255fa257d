//! The verdict as a table: a line for each promise, with what it means.

use crate::record::{Record, Row, Standing};
use crate::words::grouped;

use super::markup::Markup;
use super::table;

/// The lines of all records, the promises of the first one first.
pub(super) fn table(markup: &mut Markup, records: &[Record]) {
    let rows = records.iter().flat_map(|record| &record.rows);
    let promises = table::each_once(rows.map(|row| &*row.invariant));
    let is_comparison = records.len() > 1;
    let class = if is_comparison { "stack wide" } else { "stack" };
    let heads = |head: &mut Markup| heads(head, records);
    table::stack(markup, class, heads, |rows| {
        for promise in promises {
            table::stack_row(rows, |line| {
                table::stack_name(line, promise, meaning_of(promise, records));
                for record in records {
                    let mut rows = record.rows.iter();
                    let row = rows.find(|row| row.invariant == promise);
                    let state = is_comparison.then_some(&*record.timer_queue);
                    cells(line, row, state.unwrap_or(COLUMNS[0]));
                }
            });
        }
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

fn meaning_of<'a>(promise: &str, records: &'a [Record]) -> Option<&'a str> {
    let mut rows = records.iter().flat_map(|record| &record.rows);
    rows.find(|row| row.invariant == promise)
        .map(|row| &*row.meaning)
}

/// The sign and the word for how a promise came out.
fn standing(markup: &mut Markup, standing: Standing) {
    let (class, sign) = match standing {
        Standing::Pass => ("badge good", "✓"),
        Standing::Fail => ("badge bad", "✗"),
        Standing::Inconclusive => ("badge unsure", "?"),
        Standing::NotExercised => ("badge", "–"),
    };
    let word = standing.word();
    markup.element("span", &[("class", class)], |badge| {
        badge.leaf("span", &[("aria-hidden", "true")], sign);
        badge.text(format_args!(" {word}"));
    });
}

fn heads(head: &mut Markup, records: &[Record]) {
    if records.len() > 1 {
        table::stack_row(head, |row| {
            row.leaf("td", &[("role", "cell")], "");
            for record in records {
                let columns = [("scope", "colgroup"), ("colspan", "4")];
                let group = [&columns[..], &[("role", "columnheader")]].concat();
                row.leaf("th", &group, &record.timer_queue);
            }
        });
    }
    table::stack_row(head, |row| {
        let columns = records.iter().flat_map(|_| COLUMNS);
        table::stack_heads(row, ["promise"].into_iter().chain(columns));
    });
}

/// `label` stands beside the outcome where the table is narrow.
fn cells(line: &mut Markup, row: Option<&Row>, label: &str) {
    let unknown = Row::default();
    let row = row.unwrap_or(&unknown);
    let outcome = [
        ("class", "outcome"),
        ("data-label", label),
        ("role", "cell"),
    ];
    line.element("td", &outcome, |cell| standing(cell, row.standing));
    table::stack_cell(line, COLUMNS[1], grouped(row.checks));
    table::stack_cell(line, COLUMNS[2], &row.worst);
    table::stack_cell(line, COLUMNS[3], &row.bound);
}

const COLUMNS: [&str; 4] = ["verdict", "checks", "worst", "bound"];
