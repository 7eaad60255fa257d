//! The verdict as a table: a line for each promise, with what it means.

use maud::{Markup, html};

use super::table;
use crate::record::{Record, Row, RowStatus};
use crate::words::grouped;

/// The lines of all records, the promises of the first one first.
pub(super) fn table(records: &[Record]) -> Markup {
    let rows = || records.iter().flat_map(|record| &record.rows);
    let promises = table::each_once(rows().map(|row| &*row.invariant));
    let meaning = |promise| {
        let row = rows().find(|row| row.invariant == promise);
        row.map(|row| &*row.meaning)
    };
    let is_comparison = records.len() > 1;
    let lines = html! {
        @for promise in promises {
            tr role="row" {
                (table::stack_name(promise, meaning(promise)))
                @for record in records {
                    @let row = record.rows.iter().find(|row| row.invariant == promise);
                    @let state = is_comparison.then_some(&*record.timer_queue);
                    (cells(row, state.unwrap_or(COLUMNS[0])))
                }
            }
        }
    };
    let class = if is_comparison { "stack wide" } else { "stack" };
    table::stack(class, heads(records), lines)
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

fn heads(records: &[Record]) -> Markup {
    let columns = records.iter().flat_map(|_| COLUMNS);
    html! {
        @if records.len() > 1 {
            tr role="row" {
                td role="cell" {}
                @for record in records {
                    th scope="colgroup" colspan="4" role="columnheader" { (record.timer_queue) }
                }
            }
        }
        (table::stack_heads(["promise"].into_iter().chain(columns)))
    }
}

/// `label` stands beside the outcome where the table is narrow.
fn cells(row: Option<&Row>, label: &str) -> Markup {
    let unknown = Row::default();
    let row = row.unwrap_or(&unknown);
    let (class, sign) = match row.standing {
        RowStatus::Pass => ("badge good", "✓"),
        RowStatus::Fail => ("badge bad", "✗"),
        RowStatus::Inconclusive => ("badge unsure", "?"),
        RowStatus::NotExercised => ("badge", "–"),
    };
    html! {
        td.outcome data-label=(label) role="cell" {
            span class=(class) { span aria-hidden="true" { (sign) } " " (row.standing.word()) }
        }
        (table::stack_cell(COLUMNS[1], &grouped(row.checks)))
        (table::stack_cell(COLUMNS[2], &row.worst))
        (table::stack_cell(COLUMNS[3], &row.bound))
    }
}

const COLUMNS: [&str; 4] = ["verdict", "checks", "worst", "bound"];
