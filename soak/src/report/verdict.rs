//! The verdict as a table: a line for each promise, with what it means.

use maud::{Markup, html};

use super::table;
use crate::counts::grouped;
use crate::record::{Record, Row, RowStatus};

/// The lines of all records, the promises of the first one first.
pub(super) fn table(records: &[Record]) -> Markup {
    let rows = || records.iter().flat_map(|record| &record.rows);
    let promises = table::each_once(rows().map(|row| &*row.invariant));
    let meaning = |promise| {
        let row = rows().find(|row| row.invariant == promise);
        row.map(|row| &*row.meaning)
    };
    let lines = promises.into_iter().map(|promise| {
        let cells = records.iter().flat_map(|record| {
            let mut rows = record.rows.iter();
            cells(rows.find(|row| row.invariant == promise))
        });
        let name =
            html! { (promise) @if let Some(meaning) = meaning(promise) { small { (meaning) } } };
        (name, cells.collect())
    });
    // Of two runs the first column says which one follows.
    let heads = records.iter().flat_map(|record| match records.len() {
        1 => COLUMNS,
        _ => [&record.name, COLUMNS[1], COLUMNS[2], COLUMNS[3]],
    });
    table::table(["promise"].into_iter().chain(heads), lines)
}

/// What there is to be said beside the table, if anything.
pub(super) fn words(class: &str, title: &str, words: &[String]) -> Markup {
    html! {
        @if !words.is_empty() {
            div class=(class) {
                h3 { (title) }
                ul { @for word in words { li { (word) } } }
            }
        }
    }
}

fn cells(row: Option<&Row>) -> [Markup; 4] {
    let unknown = Row::default();
    let row = row.unwrap_or(&unknown);
    let (class, sign) = match row.standing {
        RowStatus::Pass => ("badge good", "✓"),
        RowStatus::Fail => ("badge bad", "✗"),
        RowStatus::Inconclusive => ("badge unsure", "?"),
        RowStatus::NotExercised => ("badge", "–"),
    };
    [
        html! {
            span class=(class) { span aria-hidden="true" { (sign) } " " (row.standing.word()) }
        },
        html! { (grouped(row.checks)) },
        html! { (row.worst) },
        html! { (row.bound) },
    ]
}

const COLUMNS: [&str; 4] = ["verdict", "checks", "worst", "bound"];
