//! The table: a row for each executor.

use ratatui::layout::Constraint;
use ratatui::style::Style;
use ratatui::widgets::{Row, Table};

use super::reading::{Executor, Reading};

/// Heading and width of each column.
const COLUMNS: [(&str, u16); 11] = [
    ("executor", 8),
    ("name", 20),
    ("turns/s", 9),
    ("sleeps/s", 9),
    ("polls/s", 10),
    ("calls/s", 9),
    ("runnable", 9),
    ("timers", 9),
    ("fired/s", 9),
    ("late p99", 10),
    ("overruns", 9),
];

/// What the executors did between two readings.
pub fn of(before: &Reading, now: &Reading) -> Table<'static> {
    let seconds = now.at.saturating_duration_since(before.at).as_secs_f64();
    let nothing = Executor::default();
    let rows = now.executors.iter().map(|(number, executor)| {
        // One that was not there has done nothing before.
        let then = before.executors.get(number).unwrap_or(&nothing);
        let rate = |name: &str| {
            let more = executor.value(name) - then.value(name);
            format!("{:.0}", (more / seconds.max(f64::MIN_POSITIVE)).max(0.0))
        };
        let whole = |name: &str| format!("{:.0}", executor.value(name));
        let late = executor.lateness_p99(then);
        let overruns = executor.value("slice_overruns_total");
        let has_overrun = overruns > then.value("slice_overruns_total");
        let row = Row::new([
            number.to_string(),
            executor.name.clone(),
            rate("turns_total"),
            rate("parks_total"),
            rate("polls_total"),
            rate("ring_enters_total"),
            whole("tasks_runnable"),
            whole("timers_live"),
            rate("timers_fired_total"),
            late.map_or_else(|| "-".to_owned(), |late| format!("{late:.1?}")),
            whole("slice_overruns_total"),
        ]);
        let style = Style::new();
        row.style(if has_overrun { style.red() } else { style })
    });
    let widths = COLUMNS.map(|(_, width)| Constraint::Length(width));
    let headings = Row::new(COLUMNS.map(|(heading, _)| heading));
    Table::new(rows, widths).header(headings.style(Style::new().bold()))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn reading(turns: u64, overruns: u64, at: Instant) -> Reading {
        let text = format!(
            "glommio_turns_total{{executor=\"7\",name=\"worker-7\"}} {turns}\n\
             glommio_timers_live{{executor=\"7\",name=\"worker-7\"}} 42\n\
             glommio_slice_overruns_total{{executor=\"7\",name=\"worker-7\"}} {overruns}\n"
        );
        Reading::new(&text, at)
    }

    #[test]
    fn rates_are_between_two_readings() {
        let begin = Instant::now();
        let before = reading(1000, 2, begin);
        let now = reading(1500, 3, begin + Duration::from_secs(2));
        let mut terminal = Terminal::new(TestBackend::new(130, 4)).expect("memory");
        let draw = |frame: &mut ratatui::Frame<'_>| {
            frame.render_widget(of(&before, &now), frame.area());
        };
        terminal.draw(draw).expect("memory");
        let buffer = terminal.backend().buffer();
        let line = |y| -> Vec<String> {
            let cells = (0..130).map(|x| buffer[(x, y)].symbol());
            cells
                .collect::<String>()
                .split_whitespace()
                .map(str::to_owned)
                .collect()
        };
        assert_eq!(line(0)[..3], ["executor", "name", "turns/s"]);
        assert_eq!(
            line(1),
            [
                "7", "worker-7", "250", "0", "0", "0", "0", "42", "0", "-", "3"
            ]
        );
        assert_eq!(
            buffer[(0, 1)].fg,
            ratatui::style::Color::Red,
            "it has overrun"
        );
    }
}
