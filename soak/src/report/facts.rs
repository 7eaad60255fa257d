//! What ran, where and when.

use std::time::{Duration, UNIX_EPOCH};

use maud::{Markup, html};

use super::axis::{Quantity, run_time};
use crate::record::Record;

/// What ran, where and when.
pub(super) fn facts(records: &[Record]) -> Markup {
    let all: Vec<Vec<(&str, String)>> = records.iter().map(facts_of).collect();
    html! {
        @if let Some((first, others)) = all.split_first() {
            dl.facts {
                @for (place, (name, text)) in first.iter().enumerate() {
                    div {
                        dt { (name) }
                        dd { (text) }
                        // What differs between the runs is said for each of them.
                        @for other in others {
                            @if other[place].1 != *text { dd { (other[place].1) } }
                        }
                    }
                }
            }
        }
    }
}

fn facts_of(record: &Record) -> Vec<(&'static str, String)> {
    let (machine, plan) = (&record.machine, &record.plan);
    let list = |items: &[String]| {
        if items.is_empty() {
            "–".to_owned()
        } else {
            items.join(", ")
        }
    };
    vec![
        ("Timer queue", record.timer_queue.clone()),
        ("Began", began(record.started_unix_s)),
        ("Duration", duration(record)),
        ("Seed", plan.seed.to_string()),
        ("Load", load(record)),
        ("Workloads", list(&plan.workloads)),
        ("Executors", list(&plan.executors)),
        ("Files", plan.files.clone()),
        (
            "Planted defect",
            plan.injected.clone().unwrap_or_else(|| "none".to_owned()),
        ),
        ("Kernel", machine.kernel.clone()),
        (
            "Processor",
            format!("{}, {} cores", machine.cpu, machine.cores),
        ),
        ("Memory", Quantity::Bytes.text(machine.memory_bytes as f64)),
        (
            "Driver",
            if machine.ring.is_empty() {
                "–".to_owned()
            } else {
                machine.ring.clone()
            },
        ),
        ("Build", machine.build.clone()),
        (
            "Speed",
            format!(
                "{:.2} times slower than the reference machine",
                machine.slowness
            ),
        ),
    ]
}

fn duration(record: &Record) -> String {
    let (ran, asked) = (run_time(record.ran_s), run_time(record.plan.duration_s));
    if ran == asked {
        ran
    } else {
        format!("{ran} of {asked}")
    }
}

fn began(unix_s: u64) -> String {
    let began = UNIX_EPOCH + Duration::from_secs(unix_s.min(YEAR_9999_UNIX_S));
    let text = humantime::format_rfc3339_seconds(began).to_string();
    text.replace('T', " ").replace('Z', " UTC")
}

/// What was asked for, and what was made of it on a machine that is slow.
fn load(record: &Record) -> String {
    let (asked, given) = (asked_load(record), record.plan.load);
    if record.machine.slowness > 1.0 {
        format!("{asked} times the default, on this machine {given:.2} times")
    } else {
        format!("{asked} times the default")
    }
}

/// The load before it was divided by how slow the machine is.
fn asked_load(record: &Record) -> f64 {
    (record.plan.load * record.machine.slowness.max(1.0) * 1e3).round() / 1e3
}

/// The last second that has a date of four digits.
const YEAR_9999_UNIX_S: u64 = 253_402_300_799;
