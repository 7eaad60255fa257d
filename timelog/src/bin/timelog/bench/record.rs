//! The run for programs.

use serde_json::{Value, json};

use super::bars::Wanted;
use super::latency::quantiles;
use super::results::{Measured, Results};
use super::scaling::PARTS;

/// All figures as JSON: rates a second, times in nanoseconds.
pub fn json(results: &Results) -> String {
    let setting = &results.setting;
    let value = json!({
        "machine": {
            "kernel": setting.kernel(),
            "processor": setting.machine.processor,
            "processors": setting.machine.processors,
            "compiler": setting.build.compiler,
            "commit": setting.build.commit,
            "command": setting.command,
            "load": setting.load,
        },
        "cases": results.cases.iter().map(case).collect::<Vec<_>>(),
        "floors": results.floors.iter().map(|outcome| {
            let (kind, bar) = match outcome.wanted {
                Wanted::Rate(bar) => ("rate", Some(bar)),
                Wanted::Time(bar) => ("time", Some(bar)),
                Wanted::Nanoseconds(bar) => ("nanoseconds", Some(bar)),
                Wanted::Nothing => ("rate", None),
            };
            json!({
                "what": outcome.what,
                "floor": outcome.floor,
                "kind": kind,
                "bar": bar,
                "ns": outcome.ns,
                "floor_ns": outcome.floor_ns,
                "ratio": outcome.ratio.median,
                "quickest": outcome.quickest,
                "ratio_min": outcome.ratio.min,
                "ratio_max": outcome.ratio.max,
                "is_met": outcome.is_met(),
            })
        }).collect::<Vec<_>>(),
        "memory_ratio": results.memory,
        "latencies": results.latencies.iter().map(|outcome| {
            let [p50, p99, p999, max] = quantiles(&outcome.append);
            let clock = quantiles(&outcome.clock);
            let steps = quantiles(&outcome.steps);
            json!({
                "id": outcome.case.id,
                "appends": outcome.appends,
                "p50_ns": p50,
                "p99_ns": p99,
                "p999_ns": p999,
                "max_ns": max,
                "clock_ns": clock,
                "steps_ns": steps,
                "ns_a_row": outcome.elapsed.as_nanos() as f64 / outcome.appends as f64,
            })
        }).collect::<Vec<_>>(),
        "growth": results.growth.as_ref().map(|growth| {
            let times = growth.times.iter().map(|times| {
                let ns = times.parts().map(|part| part.as_nanos() as u64);
                json!({ "rows": times.rows, "ns": ns })
            });
            json!({
                "parts": PARTS,
                "slopes": growth.slopes,
                "doubling": growth.doubling,
                "times": times.collect::<Vec<_>>(),
            })
        }),
        "k5": results.matrix.iter().map(|outcome| {
            let stats = &outcome.stats;
            json!({
                "cell": outcome.cell.name(),
                "rate": outcome.summary.rate(),
                "pressure": stats.pressure,
                "sealed_runs_max": stats.sealed_runs_max,
                "rows_flushed": stats.rows_flushed,
                "rows_rewritten": stats.rows_rewritten,
            })
        }).collect::<Vec<_>>(),
        "durable": results.durable.iter().map(|row| {
            json!({
                "what": row.what,
                "unit": row.unit,
                "median": row.figure.median,
                "least": row.figure.min,
                "greatest": row.figure.max,
                "is_met": row.wanted.is_met(row.figure.median),
            })
        }).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

fn case(measured: &Measured) -> Value {
    let Measured {
        case,
        form,
        summary,
    } = measured;
    json!({
        "id": case.id,
        "form": form.name(),
        "what": case.what,
        "operations": summary.operations,
        "rate": summary.rate(),
        "median_ns": summary.median.as_nanos() as u64,
        "least_ns": summary.least.as_nanos() as u64,
        "greatest_ns": summary.greatest.as_nanos() as u64,
        "mad_ns": summary.mad.as_nanos() as u64,
        "published": case.published,
        "newer": case.newer,
    })
}
