//! Prometheus' text format, version 0.0.4.

use std::fmt::{self, Write};

use glommio::metrics::Snapshot;

/// A counter, or another number, of each executor.
struct Row {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&Snapshot) -> u64,
}

const ROWS: &[Row] = &[
    counter("turns_total", "Turns of the reactor.", |it| it.turns),
    counter("parks_total", "Turns in which the thread slept.", |it| {
        it.parks
    }),
    counter(
        "slice_overruns_total",
        "Rounds of tasks that lasted too long.",
        |it| it.slice_overruns,
    ),
    counter("polls_total", "Polls of tasks.", |it| {
        it.polls + it.first_polls
    }),
    gauge(
        "tasks_runnable",
        "Tasks that wait for their turn.",
        Snapshot::tasks_runnable,
    ),
    counter("wakes_by_io_total", "Completions for tasks.", |it| {
        it.wakes_by_io
    }),
    counter(
        "wakes_by_threads_total",
        "Wakes that came from other threads.",
        |it| it.wakes_by_threads,
    ),
    counter(
        "tasks_panicked_total",
        "Tasks whose panic was isolated.",
        |it| it.tasks_panicked,
    ),
    counter(
        "datagrams_received_total",
        "Datagrams that were received in batches.",
        |it| it.datagrams_received,
    ),
    counter(
        "datagram_pauses_total",
        "Receives of datagrams that waited for a free buffer.",
        |it| it.datagram_pauses,
    ),
    counter("timers_armed_total", "Timers that were armed.", |it| {
        it.timers_armed
    }),
    counter("timers_rearmed_total", "Timers that were moved.", |it| {
        it.timers_rearmed
    }),
    counter(
        "timers_cancelled_total",
        "Timers that were taken back.",
        |it| it.timers_cancelled,
    ),
    counter("timers_fired_total", "Timers that have fired.", |it| {
        it.timers_fired
    }),
    gauge(
        "timers_live",
        "Timers that are armed.",
        Snapshot::timers_live,
    ),
    counter("ring_enters_total", "System calls for the ring.", |it| {
        it.ring_enters
    }),
    counter(
        "ring_submissions_total",
        "Submissions that the kernel took.",
        |it| it.ring_submissions,
    ),
    counter("blocking_calls_total", "Calls on blocking threads.", |it| {
        it.blocking_calls
    }),
    gauge(
        "blocking_calls_live",
        "Blocking calls that are queued or running.",
        Snapshot::blocking_calls_live,
    ),
];

const fn counter(name: &'static str, help: &'static str, value: fn(&Snapshot) -> u64) -> Row {
    let kind = "counter";
    Row {
        name,
        kind,
        help,
        value,
    }
}

const fn gauge(name: &'static str, help: &'static str, value: fn(&Snapshot) -> u64) -> Row {
    let kind = "gauge";
    Row {
        name,
        kind,
        help,
        value,
    }
}

/// All of `executors`.
pub fn text(executors: &[Snapshot]) -> String {
    let mut text = String::new();
    write(&mut text, executors).expect("a string takes everything");
    text
}

fn write(text: &mut String, executors: &[Snapshot]) -> fmt::Result {
    for Row {
        name,
        kind,
        help,
        value,
    } in ROWS
    {
        writeln!(text, "# HELP glommio_{name} {help}")?;
        writeln!(text, "# TYPE glommio_{name} {kind}")?;
        for executor in executors {
            writeln!(
                text,
                "glommio_{name}{{{}}} {}",
                labels(executor),
                value(executor)
            )?;
        }
    }
    let name = "glommio_timer_lateness_seconds";
    writeln!(
        text,
        "# HELP {name} How long after its deadline a timer fires."
    )?;
    writeln!(text, "# TYPE {name} histogram")?;
    for executor in executors {
        let labels = labels(executor);
        let mut count = 0;
        let mut sum = 0.0;
        for (bound, fired) in executor.timer_lateness.buckets() {
            count += fired;
            // As if all were at the end of their bucket, which is within an eighth.
            sum += bound.as_secs_f64() * fired as f64;
            let bound = bound.as_secs_f64();
            writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {count}")?;
        }
        writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}")?;
        writeln!(text, "{name}_sum{{{labels}}} {sum}")?;
        writeln!(text, "{name}_count{{{labels}}} {count}")?;
    }
    Ok(())
}

/// The labels of an executor's rows. A label's value has three characters that are escaped.
fn labels(executor: &Snapshot) -> String {
    let name = &executor.name;
    let name = name
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("executor=\"{}\",name=\"{name}\"", executor.executor)
}
