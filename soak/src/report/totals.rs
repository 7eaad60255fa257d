//! Tables of numbers over the whole run: percentiles and sums.

use maud::{Markup, html};

use super::axis::Quantity;
use super::table;
use crate::counts::grouped;
use crate::record::{Distribution, Record, Totals};

/// Every distribution, those of the same name under each other.
pub(super) fn percentiles(records: &[Record]) -> Markup {
    let distributions = records.iter().flat_map(|record| &record.distributions);
    let names = table::each_once(distributions.map(|distribution| &*distribution.name));
    let rows = names.into_iter().flat_map(|name| {
        records.iter().filter_map(move |record| {
            let mut distributions = record.distributions.iter();
            let found = distributions.find(|distribution| distribution.name == name)?;
            let of = (records.len() > 1).then_some(&record.timer_queue);
            let name = html! { (name) @if let Some(of) = of { small { (of) } } };
            Some((name, cells(found).map(|cell| html! { (cell) }).into()))
        })
    });
    table::table(["what"].into_iter().chain(QUANTILES), rows)
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
pub(super) fn totals(records: &[Record]) -> Markup {
    // A single column needs no head.
    let names = records.iter().map(|record| match records.len() {
        1 => "",
        _ => &*record.timer_queue,
    });
    let names: Vec<&str> = names.collect();
    html! {
        div.totals {
            @for (title, totals) in TOTALS {
                @let rows = totals.iter().map(|(name, total)| {
                    let sums = records.iter().map(|record| grouped(total(&record.totals)));
                    table::texts(name, sums)
                });
                (table::table([title].into_iter().chain(names.iter().copied()), rows))
            }
        }
    }
}

type Total = (&'static str, fn(&Totals) -> u64);

const TOTALS: [(&str, &[Total]); 7] = [
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
        "Files",
        &[
            ("bytes written", |totals| totals.file_bytes_written),
            ("bytes read", |totals| totals.file_bytes_read),
            ("syncs", |totals| totals.file_syncs),
            ("processes killed", |totals| totals.crashes),
        ],
    ),
    (
        "Service",
        &[
            ("shards killed", |totals| totals.shards_killed),
            ("connections moved", |totals| totals.connections_moved),
            ("requests refused", |totals| totals.requests_refused),
        ],
    ),
    (
        "QUIC",
        &[
            ("connections", |totals| totals.quic_connections),
            ("streams back whole", |totals| totals.quic_streams),
            ("moves of clients", |totals| totals.quic_moves),
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
