//! What ran, where and when, and how to repeat it.

use std::time::{Duration, UNIX_EPOCH};

use clap::ValueEnum;
use maud::{Markup, html};

use super::axis::{Quantity, run_time};
use crate::check::probe::Workload;
use crate::record::Record;
use crate::timer_queue::TimerQueue;

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
            "Ring",
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

/// What to type to have the same again.
pub(super) fn command(record: &Record, is_comparison: bool) -> Vec<String> {
    let plan = &record.plan;
    let mut command = vec!["cargo run --release".to_owned(), "-p soak".to_owned()];
    let mut add = |option: &str, value: &str| command.push(format!("{option}{value}"));
    if record.timer_queue == TimerQueue::Classic.label() && !is_comparison {
        add("--no-default-features", "");
    }
    add("--", "");
    if is_comparison {
        add("--compare", "");
    }
    let duration_ms = (plan.duration_s * 1e3).round() as u64;
    match duration_ms % 1_000 {
        0 => add("--duration ", &format!("{}s", duration_ms / 1_000)),
        _ => add("--duration ", &format!("{duration_ms}ms")),
    }
    add("--seed ", &plan.seed.to_string());
    add("--load ", &asked_load(record).to_string());
    let has_clients = |name: &String| name == Workload::MessageQueue.label();
    if plan.clients > 0 && plan.workloads.iter().any(has_clients) {
        add("--clients ", &plan.clients.to_string());
    }
    if plan.workloads.len() < Workload::value_variants().len() {
        add("--workload ", &plan.workloads.join(","));
    }
    if let Some(defect) = &plan.injected {
        add("--inject ", defect);
    }
    command
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
