use super::plots::all;
use super::*;
use crate::check::verdict::Evidence;
use crate::record::{Distribution, Outcome, Record, Sample};

/// A run with all that a page shows. The second sample is what no run measures.
fn record(name: &str) -> Record {
    let sample = Sample {
        at_s: 1.0,
        in_flight: 98_000,
        live_timers: 140_000,
        late_p50_ns: 38_000,
        late_max_ns: 1_600_000,
        resident_bytes: 96 << 20,
        is_quiet: true,
        ..Sample::default()
    };
    let odd = Sample {
        at_s: 2.0,
        live_timers: -3,
        cpu_cores: f64::INFINITY,
        late_max_ns: u64::MAX,
        ..Sample::default()
    };
    let mut late = support::quantiles::histogram();
    late.saturating_record_n(38_000, 100);
    late.saturating_record(12_000_000);
    Record {
        name: name.to_owned(),
        ran_s: 10.0,
        outcome: Outcome::Pass,
        rows: Evidence::default().rows(),
        distributions: vec![Distribution::new("timer lateness", &late)],
        samples: vec![sample, odd, sample],
        ..Record::default()
    }
}

fn failed() -> Record {
    let mut record = record("wheel");
    record.outcome = Outcome::Fail;
    record.rows[0].standing = Outcome::Fail;
    record.words = vec!["broker: nothing early: timer 4711 by 12 ns".to_owned()];
    record
}

#[test]
fn pages_hold_no_nonsense_and_need_nothing_from_outside() {
    let nothing = Record::default;
    for records in [
        &[][..],
        &[nothing()],
        &[nothing(), record("map")],
        &[record("wheel"), failed()],
    ] {
        let page = page(records);
        assert!(!page.contains("NaN") && !page.contains("inf "), "{page}");
        let page = page.to_lowercase();
        for word in "http: https: src= href url( <script onload".split(' ') {
            assert!(!page.contains(word), "{word}: {page}");
        }
    }
    assert!(all(&[nothing()]).is_empty());
}

#[test]
fn the_page_has_every_row_with_its_sentence_and_says_the_outcome_in_words() {
    let page = page(&[record("wheel"), failed()]);
    for row in Evidence::default().rows() {
        assert!(page.contains(&format!("{}<small>{}</small>", row.invariant, row.meaning)));
    }
    for words in [
        "<title>pass: wheel, FAIL: wheel",
        "no promise was broken.",
        "broken: nothing early.",
        "First violations, wheel",
        "</span> FAIL</span>",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
}

#[test]
fn what_a_run_says_cannot_break_the_page() {
    let hostile = "</style></title><b a='\"'>&amp;";
    let mut record = failed();
    record.machine.cpu = hostile.to_owned();
    record.distributions[0].name = hostile.to_owned();
    record.rows[0].worst = hostile.to_owned();
    record.words = vec![hostile.to_owned()];
    record.name = hostile.to_owned();
    let page = page(&[record.clone(), record]);
    assert!(!page.contains("<b a"), "{page}");
    assert!(page.contains("&lt;/style&gt;"), "{page}");
}

#[test]
fn two_runs_are_compared_by_rates_over_their_own_time() {
    let [mut wheel, mut map] = [record("wheel"), record("map")];
    (wheel.ran_s, wheel.totals.timers_fired) = (10.0, 1_234_560);
    (map.ran_s, map.totals.timers_fired) = (20.0, 1_234_560);
    let runs = [wheel, map];
    let row = "timers fired/s</th><td>123k</td><td>61.7k</td><td>2.00</td>";
    assert!(page(&runs).contains(row), "{}", page(&runs));
    let table = compared(&runs);
    let words: Vec<_> = table.split_whitespace().collect();
    let expected = ["fired/s", "123k", "61.7k", "2.00"];
    assert!(words.windows(4).any(|it| it == expected), "{table}");
    for plot in all(&runs) {
        assert_eq!(plot.diagram.panels.len(), 2, "{}", plot.explanation);
    }
}
