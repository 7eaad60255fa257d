//! The table: a row for each executor.

use ratatui::layout::Constraint;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Row, Table};

use super::reading::{Executor, Reading};

/// One column.
struct Column {
    heading: &'static str,
    width: u16,
    /// Which is left out first where there is not enough space: the one with the largest number.
    rank: u8,
    cell: fn(&Change<'_>) -> String,
}

/// What an executor did between two readings.
struct Change<'a> {
    number: u64,
    then: &'a Executor,
    now: &'a Executor,
    seconds: f64,
}

const COLUMNS: [Column; 12] = [
    Column::new("executor", 8, 0, |it| it.number.to_string()),
    Column::new("name", 15, 1, |it| it.now.name.clone()),
    Column::new("driver", 8, 11, |it| it.now.driver.clone()),
    Column::new("turns/s", 8, 5, |it| it.rate("turns_total")),
    Column::new("sleeps/s", 8, 10, |it| it.rate("parks_total")),
    Column::new("polls/s", 9, 2, |it| it.rate("polls_total")),
    Column::new("calls/s", 8, 9, |it| it.rate("ring_enters_total")),
    Column::new("runnable", 8, 3, |it| it.whole("tasks_runnable")),
    Column::new("timers", 8, 4, |it| it.whole("timers_live")),
    Column::new("fired/s", 8, 8, |it| it.rate("timers_fired_total")),
    Column::new("late p99", 9, 7, |it| {
        let late = it.now.lateness_p99(it.then);
        late.map_or_else(|| "-".to_owned(), |late| format!("{late:.1?}"))
    }),
    Column::new("overruns", 8, 6, |it| it.whole("slice_overruns_total")),
];

/// Between two columns.
const GAP: u16 = 1;

impl Column {
    const fn new(
        heading: &'static str,
        width: u16,
        rank: u8,
        cell: fn(&Change<'_>) -> String,
    ) -> Self {
        Column {
            heading,
            width,
            rank,
            cell,
        }
    }

    /// Words begin at the left, numbers end at the right.
    fn line(&self, text: String) -> Line<'static> {
        let line = Line::from(text);
        match self.heading {
            "name" | "driver" => line,
            _ => line.right_aligned(),
        }
    }
}

impl Change<'_> {
    fn rate(&self, name: &str) -> String {
        let more = self.now.value(name) - self.then.value(name);
        format!(
            "{:.0}",
            (more / self.seconds.max(f64::MIN_POSITIVE)).max(0.0)
        )
    }

    fn whole(&self, name: &str) -> String {
        format!("{:.0}", self.now.value(name))
    }
}

/// The columns that fit in `width`: the most important ones, in the order of the table.
fn fitting(width: u16) -> Vec<&'static Column> {
    let mut columns: Vec<&Column> = COLUMNS.iter().collect();
    let taken = |columns: &[&Column]| columns.iter().map(|it| it.width + GAP).sum::<u16>();
    while columns.len() > 1 && taken(&columns) > width + GAP {
        let least = (0..columns.len()).max_by_key(|&place| columns[place].rank);
        columns.remove(least.unwrap_or_default());
    }
    columns
}

/// What the executors did between two readings, in a table that is `width` wide.
pub fn of(before: &Reading, now: &Reading, width: u16) -> Table<'static> {
    let seconds = now.at.saturating_duration_since(before.at).as_secs_f64();
    let nothing = Executor::default();
    let columns = fitting(width);
    let rows = now.executors.iter().map(|(&number, executor)| {
        let change = Change {
            number,
            // One that was not there has done nothing before.
            then: before.executors.get(&number).unwrap_or(&nothing),
            now: executor,
            seconds,
        };
        let cells = columns.iter().map(|it| it.line((it.cell)(&change)));
        let overruns = |executor: &Executor| executor.value("slice_overruns_total");
        let style = Style::new();
        Row::new(cells).style(if overruns(change.now) > overruns(change.then) {
            style.red()
        } else {
            style
        })
    });
    let rows: Vec<_> = rows.collect();
    let widths = columns.iter().map(|it| Constraint::Length(it.width));
    let headings = columns.iter().map(|it| it.line(it.heading.to_owned()));
    Table::new(rows, widths)
        .column_spacing(GAP)
        .header(Row::new(headings).style(Style::new().bold()))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn reading(turns: u64, overruns: u64, at: Instant) -> Reading {
        let text = format!(
            "glommio_executor_info{{executor=\"7\",name=\"worker-7\",driver=\"epoll\"}} 1\n\
             glommio_turns_total{{executor=\"7\",name=\"worker-7\"}} {turns}\n\
             glommio_timers_live{{executor=\"7\",name=\"worker-7\"}} 42\n\
             glommio_slice_overruns_total{{executor=\"7\",name=\"worker-7\"}} {overruns}\n"
        );
        Reading::new(&text, at)
    }

    /// The words of heading and row, in a terminal of this width.
    fn drawn(width: u16) -> [Vec<String>; 2] {
        let begin = Instant::now();
        let before = reading(1000, 2, begin);
        let now = reading(1500, 3, begin + Duration::from_secs(2));
        let mut terminal = Terminal::new(TestBackend::new(width, 4)).expect("memory");
        let draw = |frame: &mut ratatui::Frame<'_>| {
            frame.render_widget(of(&before, &now, width), frame.area());
        };
        terminal.draw(draw).expect("memory");
        let buffer = terminal.backend().buffer();
        let fine = (0..width).all(|x| buffer[(x, 1)].fg == ratatui::style::Color::Red);
        assert!(fine, "it has overrun");
        [0, 1].map(|y| {
            let cells = (0..width).map(|x| buffer[(x, y)].symbol());
            let line = cells.collect::<String>();
            line.split_whitespace().map(str::to_owned).collect()
        })
    }

    #[test]
    fn rates_are_between_two_readings() {
        let [headings, row] = drawn(120);
        let expected = COLUMNS.each_ref().map(|column| {
            let words = column.heading.split_whitespace();
            words.map(str::to_owned).collect::<Vec<_>>()
        });
        assert_eq!(headings, expected.concat(), "all of them fit");
        assert_eq!(
            row,
            [
                "7", "worker-7", "epoll", "250", "0", "0", "0", "0", "42", "0", "-", "3"
            ]
        );
    }

    /// No column is cut, and those that matter least are not shown.
    #[test]
    fn a_narrow_terminal_has_fewer_columns() {
        let [headings, row] = drawn(80);
        assert_eq!(
            headings,
            [
                "executor", "name", "turns/s", "polls/s", "runnable", "timers", "late", "p99",
                "overruns"
            ]
        );
        assert_eq!(row, ["7", "worker-7", "250", "0", "0", "42", "-", "3"]);
        let [headings, row] = drawn(10);
        assert_eq!(
            (headings, row),
            (vec!["executor".to_owned()], vec!["7".to_owned()])
        );
    }
}
