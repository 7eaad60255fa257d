use super::fixture::{MAP, WHEEL, failed, record};
use super::*;
use crate::check::verdict::{Evidence, Verdict};
use crate::record::RowStatus;
use crate::report::plot::Plot;

/// Runs that end before there is anything to draw, and runs without what there is to draw.
fn odd_ones() -> Vec<Vec<Record>> {
    let mut interrupted = record(WHEEL, 0, 1.0);
    interrupted.is_interrupted = true;
    interrupted.ran_s = 0.5;
    interrupted.plan.duration_s = 300.0;
    let mut undistributed = record(WHEEL, 5, 1.0);
    undistributed.distributions.clear();
    let mut emptied = record(WHEEL, 5, 1.0);
    for distribution in &mut emptied.distributions {
        distribution.count = 0;
        distribution.buckets.clear();
    }
    let mut unmeasured = record(MAP, 3, 1.0);
    unmeasured.samples[1].armed_per_s = f64::NAN;
    unmeasured.samples[1].cpu_cores = f64::INFINITY;
    unmeasured.samples[2].late_max_ns = u64::MAX;
    unmeasured.samples[2].live_timers = -3;
    vec![
        vec![],
        vec![Record::default()],
        vec![Record::default(), record(MAP, 2, 1.0)],
        vec![interrupted.clone()],
        vec![interrupted, record(MAP, 300, 1.0)],
        vec![record(WHEEL, 1, 1.0)],
        vec![record(WHEEL, 2, 1.0)],
        vec![undistributed],
        vec![emptied],
        vec![unmeasured],
        vec![failed(3)],
        vec![record(WHEEL, 2, 1.0), record(MAP, 2, 1.0), failed(2)],
    ]
}

#[test]
fn no_page_and_no_picture_holds_nonsense() {
    let mut all = odd_ones();
    all.push(vec![record(WHEEL, 300, 1.0), record(MAP, 1_200, 2.0)]);
    for records in all {
        let mut documents = vec![page::page(&records)];
        documents.extend(plots::all(&records).iter().map(Plot::picture));
        for document in documents {
            for nonsense in ["NaN", "inf%", "inf ", "-0%", "e30"] {
                assert!(!document.contains(nonsense), "{nonsense}: {document}");
            }
        }
    }
}

#[test]
fn a_page_needs_nothing_from_outside_and_no_script() {
    for records in odd_ones() {
        let page = page::page(&records).to_lowercase();
        let outside = [
            "http:", "https:", "src=", "href", "url(", "@import", "<link",
        ];
        for reference in outside.iter().chain(&["<script", "onload"]) {
            assert!(!page.contains(reference), "{reference}");
        }
        assert!(page.contains("<meta name=\"viewport\""));
        assert!(page.contains("<html lang=\"en\">") && page.contains("<title>"));
    }
    // The name of the language is no address that is requested.
    for plot in plots::all(&[record(WHEEL, 2, 1.0)]) {
        let picture = plot.picture();
        assert_eq!(picture.matches("http").count(), 1, "{picture}");
        assert!(picture.contains("xmlns=\"http://www.w3.org/2000/svg\""));
    }
}

#[test]
fn every_line_of_the_verdict_is_there_with_its_sentence_and_outcome() {
    for records in [
        vec![record(WHEEL, 2, 1.0)],
        vec![record(WHEEL, 2, 1.0), failed(2)],
    ] {
        let page = page::page(&records);
        for row in Verdict::new(&Evidence::default()).rows {
            let line = format!("{}<small>{}</small>", row.invariant, row.meaning);
            assert!(page.contains(&line), "{line}");
        }
        let outcomes = |standing, word| {
            let rows = records.iter().flat_map(|record| &record.rows);
            let count = rows.filter(|row| row.standing == standing).count();
            assert_eq!(
                page.matches(&format!("</span> {word}</span>")).count(),
                count
            );
        };
        outcomes(RowStatus::Pass, "pass");
        outcomes(RowStatus::Fail, "FAIL");
        outcomes(RowStatus::Inconclusive, "inconclusive");
        outcomes(RowStatus::NotExercised, "not exercised");
    }
}

#[test]
fn the_outcome_is_said_in_words() {
    let page = page::page(&[record(WHEEL, 2, 1.0)]);
    assert!(page.contains("<title>pass: staged timing wheel"));
    assert!(page.contains("found no broken promise."));
    assert!(!page.contains("FAIL") && !page.contains("First violations"));

    let page = page::page(&[failed(2)]);
    assert!(page.contains("<title>FAIL: staged timing wheel"));
    assert!(page.contains("Broken: nothing early."));
    assert!(page.contains("“early” was planted on purpose. That the run fails"));
    assert!(page.contains("First violations, staged timing wheel"));
    assert!(page.contains("\nfirst violation\n</text>"));

    let mut record = record(WHEEL, 2, 1.0);
    record.is_interrupted = true;
    record.plan.duration_s = 300.0;
    record.plan.injected = Some("lost".to_owned());
    record.complaints = vec!["the ring is slow".to_owned()];
    let page = page::page(&[record]);
    assert!(
        page.contains("ended by hand after 2s 400ms of 5m."),
        "{page}"
    );
    assert!(page.contains("“lost” was planted on purpose. The checks did not find it."));
    assert!(page.contains("<li>the ring is slow</li>"));
}

#[test]
fn what_a_run_says_cannot_break_the_page() {
    let hostile = "</style></title></script><b a='\"'>&amp;";
    let mut record = failed(2);
    record.timer_queue = hostile.to_owned();
    record.name = hostile.to_owned();
    record.version = hostile.to_owned();
    record.machine.cpu = hostile.to_owned();
    record.machine.ring = hostile.to_owned();
    record.plan.workloads = vec![hostile.to_owned()];
    record.plan.injected = Some(hostile.to_owned());
    record.rows[0].worst = hostile.to_owned();
    record.distributions[0].name = hostile.to_owned();
    record.words = vec![hostile.to_owned()];
    for records in [vec![record.clone()], vec![record.clone(), record]] {
        let page = page::page(&records);
        assert!(!page.contains("<b a"), "{page}");
        assert!(page.contains("&lt;/style&gt;&lt;/title&gt;"));
        for plot in plots::all(&records) {
            assert!(!plot.picture().contains("<b a"));
        }
    }
}

#[test]
fn sums_are_grouped_and_rates_are_over_the_whole_run() {
    let mut wheel = record(WHEEL, 10, 1.0);
    (wheel.ran_s, wheel.totals.timers_fired) = (10.0, 1_234_560);
    let mut map = record(MAP, 10, 1.0);
    (map.ran_s, map.totals.timers_fired) = (20.0, 1_234_560);
    assert!(page::page(&[wheel.clone()]).contains("<td>1,234,560</td>"));
    let page = page::page(&[wheel, map]);
    let row = "timers fired/s</th><td>123k</td><td>61.7k</td><td>2.00</td>";
    assert!(page.contains(row), "{page}");
}

#[test]
fn two_runs_stand_side_by_side_on_common_axes() {
    let records = [record(WHEEL, 60, 1.0), record(MAP, 120, 30.0)];
    let page = page::page(&records);
    for name in [WHEEL, MAP] {
        let state = format!("<p class=\"state\">{name}</p>");
        assert_eq!(page.matches(&state).count(), 1 + plots::all(&records).len());
        assert!(page.contains(&format!("<th scope=\"col\">{name}</th>")));
    }
    for plot in plots::all(&records) {
        let [wheel, map] = &plot.panels[..] else {
            panic!("a panel for each run: {plot:?}");
        };
        assert_eq!((&*wheel.name, &*map.name), (WHEEL, MAP));
        let picture = plot.picture();
        for name in [WHEEL, MAP] {
            assert!(picture.contains(&format!("\n{name}\n</text>")), "{picture}");
        }
        assert!(page.contains(&plot.text(wheel)) && page.contains(&plot.text(map)));
        let lines = wheel.lines.iter().chain(&map.lines);
        let points: Vec<(f64, f64)> = lines.flat_map(|line| line.points.clone()).collect();
        let xs = points.iter().map(|point| point.0);
        assert_tells_apart(&plot.x, xs.collect());
        let ys = points.iter().map(|point| point.1);
        assert_tells_apart(&plot.y, ys.filter(|&y| y > 0.0).collect());
    }
}

/// The least and the greatest lie on the axis, not beyond its ends.
fn assert_tells_apart(axis: &axis::Axis, mut values: Vec<f64>) {
    values.sort_by(f64::total_cmp);
    values.dedup();
    let apart = |pair: &[f64]| axis.place(pair[0]) < axis.place(pair[1]);
    assert!(apart(&values[..2]), "{axis:?}: {:?}", &values[..2]);
    let greatest = &values[values.len() - 2..];
    assert!(apart(greatest), "{axis:?}: {greatest:?}");
}

#[test]
fn a_run_without_samples_has_no_empty_frames() {
    let nothing = record(WHEEL, 0, 1.0);
    assert!(plots::all(std::slice::from_ref(&nothing)).is_empty());
    let page = page::page(std::slice::from_ref(&nothing));
    assert!(page.contains("before there was anything to draw") && !page.contains("<figure"));
    // Beside a run that has some, its frame stays, and says so.
    let page = page::page(&[nothing, record(MAP, 2, 1.0)]);
    assert_eq!(
        page.matches("nothing to show").count(),
        page.matches("<figure").count()
    );
}

#[test]
fn plots_show_what_there_is_and_say_it_in_words() {
    let mut record = record(WHEEL, 3, 1.0);
    for (sample, late_max_ns) in record.samples.iter_mut().zip([5_000, 0, 70_000_000]) {
        sample.late_max_ns = late_max_ns;
        sample.in_flight = 0;
    }
    let plots = plots::all(&[record]);
    let lateness = &plots[0];
    assert_eq!(lateness.key, "lateness");
    let text = lateness.text(&lateness.panels[0]);
    assert!(text.contains("max: from 0 ns to 70.0 ms."), "{text}");
    let svg = lateness.element(&lateness.panels[0]).into_string();
    assert!(svg.contains(&format!("aria-label=\"{text}\"")));
    assert!(svg.contains("late by") && svg.contains("seconds into the run"));

    let alive = plots.iter().find(|plot| plot.key == "alive");
    let lines = &alive.expect("there are timers").panels[0].lines;
    let names: Vec<_> = lines.iter().map(|line| &*line.name).collect();
    assert_eq!(names, ["timers"]);
}

#[test]
fn histograms_hold_all_of_the_timers() {
    let records = [record(WHEEL, 2, 1.0)];
    let plots = plots::all(&records);
    let latencies = plots.iter().find(|plot| plot.key == "latencies");
    for line in &latencies.expect("there are some").panels[0].lines {
        // A share is two points wide: from one wall to the other.
        let shares = line.points.windows(2).filter(|pair| pair[0].0 < pair[1].0);
        let whole: f64 = shares.map(|pair| pair[0].1).sum();
        assert!((whole - 100.0).abs() < 0.01, "{}: {whole}", line.name);
        assert!(line.points.is_sorted_by_key(|point| point.0));
    }
}

#[test]
fn a_load_is_said_as_asked_for_and_as_given() {
    let mut record = failed(90);
    record.plan.load = 0.5 / 1.07;
    let load = "0.5 times the default, on this machine 0.47 times";
    assert!(page::page(&[record]).contains(load));
}

#[test]
fn pictures_are_written_where_they_should_be() {
    let dir = tempfile::tempdir().expect("there is room for one");
    let records = [record(WHEEL, 5, 1.0)];
    let pictures = dir.path().join("a").join("b");
    let paths = write_pictures(&pictures, &records).expect("the directory is made");
    assert_eq!(paths.len(), plots::all(&records).len());
    assert!(paths.contains(&pictures.join("soak-lateness.svg")));
    assert!(paths.iter().all(|path| path.is_file()));

    let file = dir.path().join("file");
    fs::write(&file, "").expect("the directory is there");
    assert!(write_pictures(&file, &records).is_err());
}
