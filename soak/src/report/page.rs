//! The page, from its head to what explains it.

use crate::record::{Outcome, Record, Standing};
use crate::words::grouped;

use super::axis::run_time;
use super::markup::Markup;
use super::plot::{Place, Plot};
use super::{PLOT_STYLE, facts, figures, plots, totals, verdict};

/// The whole document.
pub(super) fn page(records: &[Record]) -> String {
    let mut markup = Markup::new("<!DOCTYPE html>\n");
    markup.element("html", &[("lang", "en")], |html| {
        html.element("head", &[], |head| {
            head.empty("meta", &[("charset", "utf-8")]);
            let viewport = "width=device-width, initial-scale=1";
            head.empty("meta", &[("name", "viewport"), ("content", viewport)]);
            head.leaf("title", &[], title(records));
            head.style(&[PLOT_STYLE, include_str!("page.css")]);
        });
        html.element("body", &[], |body| {
            body.element("main", &[], |main| sections(main, records));
        });
    });
    markup.finish()
}

fn title(records: &[Record]) -> String {
    let outcomes = records
        .iter()
        .map(|record| format!("{}: {}", record.outcome.word(), record.timer_queue));
    let outcomes: Vec<String> = outcomes.collect();
    format!("{} — glommio soak", outcomes.join(", "))
}

fn sections(main: &mut Markup, records: &[Record]) {
    main.element("header", &[], |header| head(header, records));
    section(main, "Verdict", |verdict| {
        verdict::table(verdict, records);
        for record in records {
            let of = |what| format!("{what}, {}", record.timer_queue);
            verdict::words(verdict, "words bad", &of("First violations"), &record.words);
            verdict::words(
                verdict,
                "words",
                &of("The library's log"),
                &record.complaints,
            );
        }
    });
    section(main, "In pictures", |pictures| {
        let plots = plots::all(records);
        if plots.is_empty() {
            pictures.leaf("p", &[], "The run ended before there was anything to draw.");
        }
        pictures.element("div", &[("class", "plots")], |figures| {
            for plot in &plots {
                figure(figures, plot);
            }
        });
    });
    section(main, "Percentiles", |section| {
        totals::percentiles(section, records)
    });
    section(main, "Totals", |section| totals::totals(section, records));
    section(main, "How to read this page", |section| {
        for paragraph in READING {
            section.leaf("p", &[], paragraph);
        }
    });
}

fn section(main: &mut Markup, title: &str, content: impl FnOnce(&mut Markup)) {
    main.element("section", &[], |section| {
        section.leaf("h2", &[], title);
        content(section);
    });
}

fn head(header: &mut Markup, records: &[Record]) {
    let versions = records.first().map_or("", |record| &record.version);
    header.leaf(
        "p",
        &[("class", "product")],
        format_args!("glommio soak {versions}"),
    );
    match records {
        [first, second] => {
            let names = format_args!("{} and {}", capital(&first.timer_queue), second.timer_queue);
            header.leaf("h1", &[], format_args!("{names} compared"));
        }
        _ => {
            let names = records.iter().map(|record| capital(&record.timer_queue));
            let names: Vec<String> = names.collect();
            header.leaf("h1", &[], format_args!("{} under load", names.join(", ")));
        }
    }
    header.element("div", &[("class", "beside")], |cards| {
        for record in records {
            card(cards, record, records.len() > 1);
        }
    });
    match records {
        [record] => figures::tiles(header, record),
        [first, second] => figures::comparison(header, first, second),
        _ => {}
    }
    facts::facts(header, records);
    if let Some(record) = records.first() {
        header.leaf("h2", &[], "Repeat it");
        header.element("p", &[("class", "command")], |paragraph| {
            paragraph.element("code", &[], |code| {
                // Lines break between options, never within one.
                for word in facts::command(record, records.len() > 1) {
                    code.leaf("span", &[], word);
                }
            });
        });
    }
}

fn capital(name: &str) -> String {
    let mut characters = name.chars();
    let first = characters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(characters).collect()
}

/// The verdict, large.
fn card(markup: &mut Markup, record: &Record, is_comparison: bool) {
    let (class, sign) = match record.outcome {
        Outcome::Pass => ("card good", "✓"),
        Outcome::Inconclusive => ("card unsure", "?"),
        Outcome::Fail => ("card bad", "✗"),
    };
    let word = record.outcome.word();
    markup.element("div", &[("class", class)], |card| {
        if is_comparison {
            card.leaf("p", &[("class", "state")], &record.timer_queue);
        }
        card.element("p", &[("class", "large")], |outcome| {
            outcome.leaf("span", &[("aria-hidden", "true")], sign);
            outcome.text(format_args!(" {word}"));
        });
        card.leaf("p", &[], outcome(record));
        if record.is_interrupted {
            let (ran, asked) = (run_time(record.ran_s), run_time(record.plan.duration_s));
            card.leaf(
                "p",
                &[],
                format_args!("It was ended by hand after {ran} of {asked}."),
            );
        }
        if let Some(defect) = &record.plan.injected {
            let judged = match record.outcome {
                Outcome::Fail => "That the run fails is what the checks are for.",
                _ => "The checks did not find it.",
            };
            card.leaf(
                "p",
                &[],
                format_args!("The defect “{defect}” was planted on purpose. {judged}"),
            );
        }
    });
}

fn outcome(record: &Record) -> String {
    let broken = record
        .rows
        .iter()
        .filter(|row| row.standing == Standing::Fail);
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

fn figure(plots: &mut Markup, plot: &Plot) {
    let class = if plot.panels.len() > 1 {
        "figure wide"
    } else {
        "figure"
    };
    plots.element("figure", &[("class", class)], |figure| {
        figure.element("figcaption", &[], |caption| {
            caption.leaf("h3", &[], plot.title);
            caption.leaf("p", &[], plot.explanation);
        });
        figure.element("div", &[("class", "beside")], |panels| {
            for panel in &plot.panels {
                panels.element("div", &[("class", "panel")], |div| {
                    if plot.panels.len() > 1 {
                        div.leaf("p", &[("class", "state")], &panel.name);
                    }
                    plot.draw(div, panel, Place::Page);
                });
            }
        });
    });
}

const READING: [&str; 6] = [
    "The soak runs the library under load and holds everything it does against an independent model \
     that knows every timer, message and byte. A promise is what the library must keep; “checks” is \
     how often it was tested, “worst” how far from the promise the library ever was, “bound” how far \
     it may be. “Not exercised” means that nothing in this run could have broken the promise.",
    "Most promises are exact: their bound is zero. Lateness cannot be, as every timer waits until the \
     machine gives its thread a core. Its bound therefore grows with how slow and how busy the \
     machine is, which a plain sleeping thread measures beside the run: the noise.",
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
