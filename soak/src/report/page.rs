//! The page, from its head to what explains it.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::axis::run_time;
use super::plot::Plot;
use super::{facts, figures, plots, totals, verdict};
use crate::counts::grouped;
use crate::record::{Outcome, Record, RowStatus};

/// The whole document.
pub(super) fn page(records: &[Record]) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title(records)) }
                style { (PreEscaped(include_str!("page.css"))) }
            }
            body { main { (sections(records)) } }
        }
    };
    page.into_string()
}

fn title(records: &[Record]) -> String {
    let outcomes = records
        .iter()
        .map(|record| format!("{}: {}", record.outcome.word(), record.name));
    let outcomes: Vec<String> = outcomes.collect();
    format!("{} — glommio soak", outcomes.join(", "))
}

fn sections(records: &[Record]) -> Markup {
    let plots = plots::all(records);
    html! {
        header { (head(records)) }
        section {
            h2 { "Verdict" }
            (verdict::table(records))
            @for record in records {
                @let of = |what| format!("{what}, {}", record.name);
                (verdict::words("words bad", &of("First violations"), &record.words))
                (verdict::words("words", &of("The library's log"), &record.complaints))
            }
        }
        section {
            h2 { "In pictures" }
            @if plots.is_empty() { p { "The run ended before there was anything to draw." } }
            div.plots { @for plot in &plots { (figure(plot)) } }
        }
        section { h2 { "Percentiles" } (totals::percentiles(records)) }
        section { h2 { "Totals" } (totals::totals(records)) }
        section {
            h2 { "How to read this page" }
            @for paragraph in READING { p { (paragraph) } }
        }
    }
}

fn head(records: &[Record]) -> Markup {
    html! {
        p.product {
            "glommio soak " @if let Some(record) = records.first() { (record.version) }
        }
        h1 {
            @match records {
                [first, second] => {
                    (capital(&first.name)) " and " (second.name) " compared"
                }
                _ => {
                    @let names = records.iter().map(|record| capital(&record.name));
                    (names.collect::<Vec<_>>().join(", ")) " under load"
                }
            }
        }
        div.beside { @for record in records { (card(record, records.len() > 1)) } }
        @match records {
            [record] => (figures::tiles(record)),
            [first, second] => (figures::comparison(first, second)),
            _ => {}
        }
        (facts::facts(records))
    }
}

fn capital(name: &str) -> String {
    let mut characters = name.chars();
    let first = characters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(characters).collect()
}

/// The verdict, large.
fn card(record: &Record, is_comparison: bool) -> Markup {
    let (class, sign) = match record.outcome {
        Outcome::Pass => ("card good", "✓"),
        Outcome::Inconclusive => ("card unsure", "?"),
        Outcome::Fail => ("card bad", "✗"),
    };
    let judged = match record.outcome {
        Outcome::Fail => "That the run fails is what the checks are for.",
        _ => "The checks did not find it.",
    };
    html! {
        div class=(class) {
            @if is_comparison { p.state { (record.name) } }
            p.large { span aria-hidden="true" { (sign) } " " (record.outcome.word()) }
            p { (outcome(record)) }
            @if record.is_interrupted {
                p {
                    "It was ended by hand after " (run_time(record.ran_s)) " of "
                    (run_time(record.plan.duration_s)) "."
                }
            }
            @if let Some(defect) = &record.plan.injected {
                p { "The defect “" (defect) "” was planted on purpose. " (judged) }
            }
        }
    }
}

fn outcome(record: &Record) -> String {
    let broken = record
        .rows
        .iter()
        .filter(|row| row.standing == RowStatus::Fail);
    let broken: Vec<&str> = broken.map(|row| &*row.invariant).collect();
    let (ran, checks) = (run_time(record.ran_s), grouped(figures::checks(record)));
    match (record.outcome, broken.len()) {
        (Outcome::Pass, _) => format!("{checks} checks in {ran} found no broken promise."),
        (Outcome::Inconclusive, _) => format!(
            "{checks} checks in {ran} found no broken promise, but the machine was too noisy to judge \
             how late all timers were."
        ),
        (Outcome::Fail, 0) => format!("{checks} checks in {ran}, and the run did not end well."),
        (Outcome::Fail, _) => {
            format!("{checks} checks in {ran}. Broken: {}.", broken.join(", "))
        }
    }
}

fn figure(plot: &Plot) -> Markup {
    let is_wide = plot.panels.len() > 1;
    html! {
        figure.figure.wide[is_wide] {
            figcaption { h3 { (plot.title) } p { (plot.explanation) } }
            div.beside {
                @for panel in &plot.panels {
                    div.panel {
                        @if is_wide { p.state { (panel.name) } }
                        (plot.element(panel))
                    }
                }
            }
        }
    }
}

const READING: [&str; 6] = [
    "The soak runs the library under load and holds everything it does against an independent model \
     that knows every timer, message and byte. A promise is what the library must keep; “checks” is \
     how often it was tested, “worst” how far from the promise the library ever was, “bound” how far \
     it may be. “Not exercised” means that nothing in this run could have broken the promise.",
    "Most promises are exact: their bound is zero. Lateness cannot be, as every timer waits until the \
     machine gives its thread a core. It is judged only in seconds in which the machine was quiet, by \
     ceilings on what others did, and held against the noise of the same seconds: how late the sleeps \
     of a plain thread were. Where too few seconds were quiet the promise is “inconclusive”, neither \
     kept nor broken, and what the whole run was like is shown without a bound.",
    "p50 is the median; of a thousand values 990 are at or below p99, and 999 at or below p99.9. On a \
     logarithmic axis, as for lateness, each labelled step is a multiple of the last.",
    "Where two runs are compared, plots of the same thing have the same axes, and the ratio is the \
     left figure divided by the right one.",
    "Where the run was longer than there are points, neighbours were joined: rates are then averages, \
     and of lateness and memory the worst was kept. The plots over time end with the load; the verdict \
     and the percentiles also hold what was settled after it.",
    "The seed makes the random choices the same again. Which thread runs when is up to the machine, so \
     that two runs with one seed do the same things at slightly different times.",
];
