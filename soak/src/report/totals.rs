//! Tables of numbers over the whole run: percentiles and sums.

use maud::{Markup, html};

use super::axis::Quantity;
use super::table;
use crate::counts::grouped;
use crate::record::{Distribution, Record};

/// Every distribution, those of the same name under each other.
pub(super) fn percentiles(records: &[Record]) -> Markup {
    let distributions = records.iter().flat_map(|record| &record.distributions);
    let names = table::each_once(distributions.map(|distribution| &*distribution.name));
    let rows = names.into_iter().flat_map(|name| {
        records.iter().filter_map(move |record| {
            let mut distributions = record.distributions.iter();
            let found = distributions.find(|distribution| distribution.name == name)?;
            let of = (records.len() > 1).then_some(&record.name);
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

/// What was done and what went wrong, a column for each record, by the names of the fields.
pub(super) fn totals(records: &[Record]) -> Markup {
    let all = records.iter().map(|record| {
        let totals = serde_json::to_value(record.totals).expect("they are plain numbers");
        totals.as_object().cloned().unwrap_or_default()
    });
    let all: Vec<_> = all.collect();
    let names = all.first().into_iter().flat_map(|totals| totals.keys());
    let rows = names.map(|name| {
        let sums = all.iter().map(|totals| totals[name].as_u64());
        let sums = sums.map(|sum| grouped(sum.unwrap_or_default()));
        table::texts(&name.replace('_', " "), sums)
    });
    let heads = records.iter().map(|record| &*record.name);
    table::table([""].into_iter().chain(heads), rows)
}
