//! Tables of numbers over the whole run: percentiles and sums.

use crate::record::{Distribution, Record, Totals};
use crate::words::grouped;

use super::axis::Quantity;
use super::markup::Markup;
use super::table;

/// Every distribution, those of the same name under each other.
pub(super) fn percentiles(section: &mut Markup, records: &[Record]) {
    let distributions = records.iter().flat_map(|record| &record.distributions);
    let names = table::each_once(distributions.map(|distribution| &*distribution.name));
    let heads = |head: &mut Markup| {
        table::stack_row(head, |row| {
            table::stack_heads(row, ["what"].into_iter().chain(QUANTILES));
        });
    };
    table::stack(section, "stack narrow", heads, |rows| {
        for name in names {
            for record in records {
                let note = (records.len() > 1).then_some(&*record.timer_queue);
                let mut distributions = record.distributions.iter();
                if let Some(found) = distributions.find(|one| one.name == name) {
                    table::stack_row(rows, |row| {
                        table::stack_name(row, name, note);
                        for (label, text) in QUANTILES.into_iter().zip(cells(found)) {
                            table::stack_cell(row, label, text);
                        }
                    });
                }
            }
        }
    });
}

fn cells(distribution: &Distribution) -> [String; QUANTILES.len()] {
    let ns = |ns| match distribution.count {
        0 => "–".to_owned(),
        _ => Quantity::Nanoseconds.text(ns as f64),
    };
    [
        ns(distribution.p50_ns),
        ns(distribution.p90_ns),
        ns(distribution.p99_ns),
        ns(distribution.p999_ns),
        ns(distribution.max_ns),
        grouped(distribution.count),
    ]
}

const QUANTILES: [&str; 6] = ["p50", "p90", "p99", "p99.9", "max", "count"];

/// What was done and what went wrong, a column for each record.
pub(super) fn totals(section: &mut Markup, records: &[Record]) {
    section.element("div", &[("class", "totals")], |groups| {
        for (title, totals) in TOTALS {
            let mut heads = vec![title];
            heads.extend(records.iter().map(|record| match records.len() {
                1 => "",
                _ => &*record.timer_queue,
            }));
            table::scrolling(groups, title, |scroll| {
                table::table(scroll, &heads, |rows| {
                    for (name, total) in totals {
                        let sums = records.iter().map(|record| grouped(total(&record.totals)));
                        table::row(rows, name, &sums.collect::<Vec<_>>());
                    }
                });
            });
        }
    });
}

type Total = (&'static str, fn(&Totals) -> u64);

const TOTALS: [(&str, &[Total]); 4] = [
    (
        "Timers",
        &[
            ("armed", |totals| totals.timers_armed),
            ("re-armed", |totals| totals.timers_rearmed),
            ("cancelled", |totals| totals.timers_cancelled),
            ("fired", |totals| totals.timers_fired),
            ("most alive at once", |totals| totals.live_timers_max),
        ],
    ),
    (
        "Messages",
        &[
            ("published", |totals| totals.messages_published),
            ("acknowledged", |totals| totals.messages_acked),
            ("deadlines passed", |totals| totals.message_timeouts),
            ("redelivered", |totals| totals.messages_redelivered),
            ("given up", |totals| totals.messages_dead),
            ("most in flight at once", |totals| totals.in_flight_max),
        ],
    ),
    (
        "Datagrams",
        &[
            ("sent", |totals| totals.datagrams_sent),
            ("lost on purpose", |totals| totals.datagrams_lost),
            ("repeated", |totals| totals.datagrams_repeated),
            ("bytes delivered", |totals| totals.bytes_delivered),
        ],
    ),
    (
        "Trouble",
        &[
            ("stops of the whole process", |totals| totals.stalls),
            ("violations", |totals| totals.violations),
        ],
    ),
];
