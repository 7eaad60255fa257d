//! Prometheus' text format, version 0.0.4.

#![forbid(unsafe_code)]

use std::fmt::{self, Write};

use super::{ExecutorMetrics, Snapshot, executors};

/// What all executors of this process have counted, as text that Prometheus reads: the body of the
/// answer to its `GET /metrics`, with the content type `text/plain; version=0.0.4`.
///
/// The names of the rows begin with `glommio_`. Each executor has a row of its own, with its number and
/// its name as the labels `executor` and `name`. Those of a
/// [pool](crate::LocalExecutorPoolBuilder) also have the label `shard`, which stays the same when a
/// shard is [restarted](crate::ShardExitPolicy::Restart). The row `glommio_executor_info`, whose value is always 1, has
/// the executor's [driver](crate::Driver) as the label `driver`.
///
/// # Examples
///
/// ```
/// use glommio::{LocalExecutor, metrics};
///
/// let executor = LocalExecutor::default();
/// executor.run(async {});
/// let row = format!("glommio_turns_total{{executor=\"{}\",name=", executor.id());
/// assert!(metrics::prometheus_text().contains(&row));
/// ```
pub fn prometheus_text() -> String {
    let executors: Vec<_> = executors().iter().map(ExecutorMetrics::snapshot).collect();
    let mut text = String::new();
    write(&mut text, &executors).expect("a string takes everything");
    text
}

/// The name of a counter or, where it does not end with `_total`, a gauge; what it is; its value.
type Row = (&'static str, &'static str, fn(&Snapshot) -> u64);

macro_rules! rows {
    ($($name:ident $help:literal $value:expr;)*) => {
        &[$((stringify!($name), $help, $value)),*]
    };
}

const ROWS: &[Row] = rows! {
    turns_total "Turns of the reactor." |it| it.turns;
    parks_total "Turns in which the thread slept." |it| it.parks;
    slice_overruns_total "Rounds of tasks that lasted too long." |it| it.slice_overruns;
    polls_total "Polls of tasks." |it| it.polls + it.first_polls;
    tasks_runnable "Tasks that wait for their turn." Snapshot::tasks_runnable;
    wakes_by_io_total "Completions for tasks." |it| it.wakes_by_io;
    wakes_by_threads_total "Wakes that came from other threads." |it| it.wakes_by_threads;
    tasks_panicked_total "Tasks whose panic was isolated." |it| it.tasks_panicked;
    datagrams_received_total "Datagrams that were received in batches." |it| it.datagrams_received;
    datagram_pauses_total "Receives of datagrams that waited for a free buffer." |it| it.datagram_pauses;
    timers_armed_total "Timers that were armed." |it| it.timers_armed;
    timers_rearmed_total "Timers that were moved." |it| it.timers_rearmed;
    timers_cancelled_total "Timers that were taken back." |it| it.timers_cancelled;
    timers_fired_total "Timers that have fired." |it| it.timers_fired;
    timers_live "Timers that are armed." Snapshot::timers_live;
    ring_enters_total "Batches of operations given to the driver." |it| it.ring_enters;
    ring_submissions_total "Operations given to the driver." |it| it.ring_submissions;
    blocking_calls_total "Calls on blocking threads." |it| it.blocking_calls;
    blocking_calls_live "Blocking calls that are queued or running." Snapshot::blocking_calls_live;
    lookups_total "Host names that were looked up." |it| it.lookups;
};

fn write(text: &mut String, executors: &[Snapshot]) -> fmt::Result {
    let name = "glommio_executor_info";
    writeln!(
        text,
        "# HELP {name} What waits for sockets, files and time.\n# TYPE {name} gauge"
    )?;
    for executor in executors {
        let (labels, driver) = (labels(executor), executor.driver);
        writeln!(text, "{name}{{{labels},driver=\"{driver}\"}} 1")?;
    }
    for (name, help, value) in ROWS {
        let is_counter = name.ends_with("_total");
        let kind = if is_counter { "counter" } else { "gauge" };
        writeln!(
            text,
            "# HELP glommio_{name} {help}\n# TYPE glommio_{name} {kind}"
        )?;
        for executor in executors {
            let (labels, value) = (labels(executor), value(executor));
            writeln!(text, "glommio_{name}{{{labels}}} {value}")?;
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
        let (mut count, mut sum) = (0, 0.0);
        for (bound, fired) in executor.timer_lateness.buckets() {
            let bound = bound.as_secs_f64();
            count += fired;
            // As if all were at the end of their bucket, which is within an eighth.
            sum += bound * fired as f64;
            writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {count}")?;
        }
        writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}")?;
        writeln!(
            text,
            "{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {count}"
        )?;
    }
    Ok(())
}

/// The labels of an executor's rows. A label's value has three characters that are escaped.
fn labels(executor: &Snapshot) -> String {
    let name = executor.name.replace('\\', "\\\\").replace('"', "\\\"");
    let name = name.replace('\n', "\\n");
    let labels = format!("executor=\"{}\",name=\"{name}\"", executor.executor);
    match executor.shard {
        Some(shard) => format!("{labels},shard=\"{shard}\""),
        None => labels,
    }
}
