//! The page, and the table of two runs that the terminal shows as well.

use std::time::{Duration, UNIX_EPOCH};

use maud::{DOCTYPE, Markup, PreEscaped, html};
use support::numbers::{BYTES, COUNTS, nanoseconds, scaled};

use super::plots::{self, Plot, run_time};
use crate::check::probe::Timing;
use crate::check::timeliness::MACHINE_NOISE;
use crate::counts::grouped;
use crate::record::{Distribution, Outcome, Record, Row, Sample};

/// The page about one run, or about two.
pub(crate) fn page(records: &[Record]) -> String {
    let outcomes = (records.iter()).map(|it| format!("{}: {}", it.outcome.word(), it.name));
    let title = outcomes.collect::<Vec<_>>().join(", ");
    let names: Vec<_> = names(records).collect();
    let plots = plots::all(records);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " — glommio soak" }
                style { (PreEscaped(include_str!("page.css"))) }
            }
            body { main {
                header {
                    p.product { "glommio soak" }
                    h1 { (names.join(" and ")) " under load" }
                    div.beside { @for record in records { (card(record)) } }
                    (figures_of_all(records))
                    (facts_of_all(records))
                }
                section {
                    h2 { "Verdict" }
                    (verdict(records))
                    @for record in records {
                        (words("words bad", "First violations", record, &record.words))
                        (words("words", "The library's log", record, &record.complaints))
                    }
                }
                section {
                    h2 { "In pictures" }
                    @if plots.is_empty() { p { "The run ended before there was anything to draw." } }
                    div.plots { @for plot in &plots { (figure(plot)) } }
                }
                section { h2 { "Percentiles" } (percentiles(records)) }
                section { h2 { "Totals" } (totals(records)) }
                section { h2 { "How to read this page" } @for text in READING { p { (text) } } }
            } }
        }
    };
    page.into_string()
}

/// The verdict, large.
fn card(record: &Record) -> Markup {
    let (class, sign) = look(record.outcome);
    let broken = (record.rows.iter()).filter(|row| row.standing == Outcome::Fail);
    let broken: Vec<_> = broken.map(|row| &*row.invariant).collect();
    let all = format!("broken: {}", broken.join(", "));
    let found = match record.outcome {
        Outcome::NotExercised | Outcome::Pass => "no promise was broken",
        Outcome::Inconclusive => {
            "no promise was broken, but the machine was too noisy to judge how late all timers were"
        }
        Outcome::Fail if broken.is_empty() => "the run did not end well",
        Outcome::Fail => &all,
    };
    html! {
        div.card.(class) {
            p.state { (record.name) }
            p.large { span aria-hidden="true" { (sign) } " " (record.outcome.word()) }
            p { (grouped(checks(record))) " checks in " (run_time(record.ran_s)) ": " (found) "." }
            @if record.is_interrupted {
                p { "It was ended by hand, before " (run_time(record.plan.duration_s)) " had passed." }
            }
        }
    }
}

/// A figure that is worth comparing: its name, how it is written, and its value.
type Figure = (&'static str, fn(f64) -> String, Option<f64>);

#[rustfmt::skip]
fn figures(run: &Record) -> [Figure; 15] {
    let found = |name, ns: fn(&Distribution) -> u64| {
        let mut all = run.distributions.iter();
        let found = all.find(|it| it.name == name && it.count > 0);
        found.map(|it| ns(it) as f64)
    };
    let late = |ns: fn(&Distribution) -> u64| found(Timing::Lateness.label(), ns);
    let per_s = |total: u64| (run.ran_s > 0.0).then(|| total as f64 / run.ran_s);
    let peak = |of: fn(&Sample) -> u64| run.samples.iter().map(of).max().map(|most| most as f64);
    let cores: f64 = run.samples.iter().map(|sample| sample.cpu_cores).sum();
    let cores = (!run.samples.is_empty()).then(|| cores / run.samples.len() as f64);
    let count: fn(f64) -> String = |value| scaled(value, &COUNTS);
    let bytes: fn(f64) -> String = |value| scaled(value, &BYTES);
    let totals = &run.totals;
    [
        ("lateness p50", nanoseconds, late(|it| it.p50_ns)),
        ("lateness p99", nanoseconds, late(|it| it.p99_ns)),
        ("lateness p99.9", nanoseconds, late(|it| it.p999_ns)),
        ("lateness max", nanoseconds, late(|it| it.max_ns)),
        ("noise p99.9", nanoseconds, found(MACHINE_NOISE, |it| it.p999_ns)),
        ("timers armed/s", count, per_s(totals.timers_armed)),
        ("timers cancelled/s", count, per_s(totals.timers_cancelled)),
        ("timers fired/s", count, per_s(totals.timers_fired)),
        ("most timers alive", count, Some(totals.live_timers_max as f64)),
        ("messages acked/s", count, per_s(totals.messages_acked)),
        ("datagrams sent/s", count, per_s(totals.datagrams_sent)),
        ("cores used on average", |cores| format!("{cores:.2} cores"), cores),
        ("peak resident memory", bytes, peak(|it| it.resident_bytes)),
        ("peak allocated memory", bytes, peak(|it| it.allocated_bytes)),
        ("checks made", count, Some(checks(run) as f64)),
    ]
}

/// By figure: of each run, and of two the first as a multiple of the second.
fn compared_figures(records: &[Record]) -> Vec<(&'static str, Vec<String>)> {
    let all: Vec<_> = records.iter().map(figures).collect();
    let rows = (0..all.first().map_or(0, |figures| figures.len())).map(|place| {
        let finite = |(name, text, value): Figure| (name, text, value.filter(|it| it.is_finite()));
        let of_each = all.iter().map(|figures| finite(figures[place]));
        let of_each: Vec<_> = of_each.collect();
        let text = |&(_, text, value): &Figure| value.map_or_else(|| "–".to_owned(), text);
        let mut cells: Vec<_> = of_each.iter().map(text).collect();
        if let [(.., first), (.., second)] = of_each[..] {
            let ratio = first.zip(second.filter(|&second| second > 0.0));
            cells.push(ratio.map_or_else(|| "–".to_owned(), |(a, b)| format!("{:.2}", a / b)));
        }
        (of_each[0].0, cells)
    });
    rows.collect()
}

/// Both runs in columns, with their ratio, for a terminal.
pub(crate) fn compared(runs: &[Record; 2]) -> String {
    let row = |name: &str, cells: [&str; 3]| {
        let [a, b, ratio] = cells;
        format!("{name:<24}{a:>22}{b:>22}{ratio:>10}\n")
    };
    let mut table = row("", [&runs[0].name, &runs[1].name, "ratio"]);
    for (name, cells) in compared_figures(runs) {
        table += &row(name, [&cells[0], &cells[1], &cells[2]]);
    }
    let [a, b] = runs.each_ref().map(|run| run.outcome.word());
    table + row("verdict", [a, b, ""]).trim_end()
}

fn figures_of_all(records: &[Record]) -> Markup {
    let heads = names(records).chain((records.len() == 2).then_some("ratio"));
    table(heads, compared_figures(records).into_iter().map(texts))
}

/// What ran, where and when; what differs between the runs is said for each of them.
fn facts_of_all(records: &[Record]) -> Markup {
    let all: Vec<_> = records.iter().map(facts).collect();
    html! {
        @if let Some((first, others)) = all.split_first() {
            dl.facts {
                @for (place, (name, text)) in first.iter().enumerate() {
                    div {
                        dt { (name) }
                        dd { (text) }
                        @for other in others {
                            @if other[place].1 != *text { dd { (other[place].1) } }
                        }
                    }
                }
            }
        }
    }
}

#[rustfmt::skip]
fn facts(record: &Record) -> [(&'static str, String); 13] {
    let (machine, plan) = (&record.machine, &record.plan);
    let began = UNIX_EPOCH + Duration::from_secs(record.started_unix_s);
    let files = if plan.files.is_empty() { "–" } else { &plan.files };
    let slowness = format!("{:.2} times slower than on the reference machine", machine.slowness);
    [
        ("Timer queue", record.timer_queue.clone()),
        ("Began", humantime::format_rfc3339_seconds(began).to_string()),
        ("Duration", run_time(plan.duration_s)),
        ("Seed", plan.seed.to_string()),
        ("Load on this machine", format!("{:.2}", plan.load)),
        ("Workloads", plan.workloads.join(", ")),
        ("Executors", plan.executors.join(", ")),
        ("Files", files.to_owned()),
        ("Kernel", machine.kernel.clone()),
        ("Processor", format!("{}, {} cores", machine.cpu, machine.cores)),
        ("Memory", scaled(machine.memory_bytes as f64, &BYTES)),
        ("Driver", machine.ring.clone()),
        ("Build", format!("{}, {slowness}", machine.build)),
    ]
}

/// A line for each promise, those of the first run first.
fn verdict(records: &[Record]) -> Markup {
    let rows = || records.iter().flat_map(|record| &record.rows);
    let promises = each_once(rows().map(|row| &*row.invariant)).into_iter();
    let lines = promises.map(|promise| {
        let is_it = |row: &&Row| row.invariant == promise;
        let meaning = rows().find(is_it).map_or("", |row| &row.meaning);
        let found = records.iter().map(|run| run.rows.iter().find(is_it));
        let name = html! { (promise) small { (meaning) } };
        (name, found.flat_map(standing).collect())
    });
    // Of two runs the first column says which one follows.
    let heads = names(records).flat_map(|name| {
        let first = [name, "verdict"][usize::from(records.len() == 1)];
        [first, "checks", "worst", "bound"]
    });
    table(heads, lines)
}

fn standing(row: Option<&Row>) -> [Markup; 4] {
    let unknown = Row::default();
    let row = row.unwrap_or(&unknown);
    let (class, sign) = look(row.standing);
    [
        html! {
            span.badge.(class) { span aria-hidden="true" { (sign) } " " (row.standing.word()) }
        },
        html! { (grouped(row.checks)) },
        html! { (row.worst) },
        html! { (row.bound) },
    ]
}

/// The class and the sign of what came out so.
fn look(outcome: Outcome) -> (&'static str, &'static str) {
    match outcome {
        Outcome::NotExercised => ("", "–"),
        Outcome::Pass => ("good", "✓"),
        Outcome::Inconclusive => ("unsure", "?"),
        Outcome::Fail => ("bad", "✗"),
    }
}

/// What there is to be said beside the table, if anything.
fn words(class: &str, title: &str, record: &Record, words: &[String]) -> Markup {
    html! {
        @if !words.is_empty() {
            div class=(class) {
                h3 { (title) ", " (record.name) }
                ul { @for word in words { li { (word) } } }
            }
        }
    }
}

fn figure(plot: &Plot) -> Markup {
    html! {
        figure.figure.wide[plot.diagram.panels.len() > 1] {
            figcaption { h3 { (plot.diagram.title) } p { (plot.explanation) } }
            div.beside {
                @for panel in &plot.diagram.panels {
                    div.panel {
                        div.plane role="img" aria-label=(plot.text(panel)) {
                            (PreEscaped(plot.svg_within_page(panel)))
                        }
                    }
                }
            }
        }
    }
}

/// Every distribution, those of the same name under each other.
fn percentiles(records: &[Record]) -> Markup {
    fn of(run: &Record) -> impl Iterator<Item = (&str, &Distribution)> {
        run.distributions.iter().map(|it| (&*run.name, it))
    }
    let all = || records.iter().flat_map(of);
    let names = each_once(all().map(|(_, it)| &*it.name)).into_iter();
    let in_order = names.flat_map(|name| all().filter(move |(_, it)| it.name == name));
    let rows = in_order.map(|(run, it)| {
        let ns = [it.p50_ns, it.p90_ns, it.p99_ns, it.p999_ns, it.max_ns];
        let cells = ns.map(|ns| nanoseconds(ns as f64)).into_iter();
        let cells = cells.chain([grouped(it.count)]);
        let name = html! { (it.name) @if records.len() > 1 { small { (run) } } };
        (name, cells.map(|cell| html! { (cell) }).collect())
    });
    table(["p50", "p90", "p99", "p99.9", "max", "count"], rows)
}

/// What was done and what went wrong, by the names of the fields.
fn totals(records: &[Record]) -> Markup {
    let all = records.iter().map(|record| {
        let totals = serde_json::to_value(record.totals).expect("they are plain numbers");
        totals.as_object().cloned().unwrap_or_default()
    });
    let all: Vec<_> = all.collect();
    let fields = all.first().into_iter().flat_map(|totals| totals.keys());
    let rows = fields.map(|name| {
        let sums = all.iter().map(|totals| totals[name].as_u64());
        let sums = sums.map(|sum| grouped(sum.unwrap_or_default()));
        texts((&name.replace('_', " "), sums.collect()))
    });
    table(names(records), rows)
}

/// What stands in a row of a table: a name, and the cells beside it.
type Cells = (Markup, Vec<Markup>);

/// On a narrow screen it scrolls by itself.
fn table<'a>(
    heads: impl IntoIterator<Item = &'a str>,
    rows: impl IntoIterator<Item = Cells>,
) -> Markup {
    html! {
        // Those who have no pointer scroll what has the focus.
        div.scroll tabindex="0" {
            table {
                thead { tr { th {} @for head in heads { th scope="col" { (head) } } } }
                tbody {
                    @for (name, cells) in rows {
                        tr { th scope="row" { (name) } @for cell in cells { td { (cell) } } }
                    }
                }
            }
        }
    }
}

fn texts((name, cells): (&str, Vec<String>)) -> Cells {
    let cells = cells.into_iter().map(|cell| html! { (cell) });
    (html! { (name) }, cells.collect())
}

fn names(records: &[Record]) -> impl Iterator<Item = &str> {
    records.iter().map(|record| &*record.name)
}

/// Each of `names` once, where it first comes.
fn each_once<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    names.fold(Vec::new(), |mut seen, name| {
        if !seen.contains(&name) {
            seen.push(name);
        }
        seen
    })
}

/// How often anything was held against what is promised.
fn checks(record: &Record) -> u64 {
    record.rows.iter().map(|row| row.checks).sum()
}

const READING: [&str; 3] = [
    "The soak runs the library under load and holds everything it does against an independent model that knows every timer, \
     message and byte. “checks” is how often a promise was tested, “worst” how far from it the library ever was, “bound” how far \
     it may be. “Not exercised” means that nothing in this run could have broken it.",
    "Most promises are exact. Lateness cannot be, as every timer waits until the machine gives its thread a core. It is judged \
     only in seconds in which the machine was quiet, against the noise of the same seconds: how late the sleeps of a plain \
     thread were. Where too few seconds were quiet the promise is “inconclusive”, neither kept nor broken.",
    "Where the run was longer than there are points, neighbours were joined: rates are averages, and of lateness and memory the \
     worst was kept. Plots of two runs have the same axes. The plots end with the load; the verdict and the percentiles also \
     hold what was settled after it.",
];
