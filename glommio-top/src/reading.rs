//! What a process says of its executors, read from Prometheus' text format.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// All executors at one time, by their numbers.
pub struct Reading {
    pub at: Instant,
    pub executors: BTreeMap<u64, Executor>,
}

#[derive(Default)]
pub struct Executor {
    pub name: String,
    /// Empty where the process does not say.
    pub driver: String,
    values: BTreeMap<String, f64>,
    /// The buckets of the lateness of timers: how many fired within so many seconds.
    lateness: Vec<(f64, f64)>,
}

impl Reading {
    /// Lines that are not understood are left out.
    pub fn new(text: &str, at: Instant) -> Self {
        let mut executors: BTreeMap<u64, Executor> = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, labels, value)) = parts(line) else {
                continue;
            };
            let label = |wanted: &str| {
                let found = labels.iter().find(|(name, _)| name == wanted);
                found.map(|(_, value)| value.as_str())
            };
            let Some(number) = label("executor").and_then(|it| it.parse().ok()) else {
                continue;
            };
            let executor = executors.entry(number).or_default();
            label("name")
                .unwrap_or_default()
                .clone_into(&mut executor.name);
            if let Some(driver) = label("driver") {
                driver.clone_into(&mut executor.driver);
            }
            match label("le").map(|le| le.parse().unwrap_or(f64::INFINITY)) {
                Some(seconds) => executor.lateness.push((seconds, value)),
                None => _ = executor.values.insert(name.to_owned(), value),
            }
        }
        Reading { at, executors }
    }
}

impl Executor {
    /// The value of `glommio_{name}`; zero if there is none.
    pub fn value(&self, name: &str) -> f64 {
        let value = self.values.get(&format!("glommio_{name}"));
        value.copied().unwrap_or_default()
    }

    /// Within which time 99 of 100 timers have fired since `before`; none if no timer has.
    pub fn lateness_p99(&self, before: &Executor) -> Option<Duration> {
        let fired = |executor: &Executor, seconds: f64| {
            let within = executor
                .lateness
                .iter()
                .rev()
                .find(|(bound, _)| *bound <= seconds);
            within.map_or(0.0, |(_, count)| *count)
        };
        let since = |seconds| fired(self, seconds) - fired(before, seconds);
        let all = since(f64::INFINITY);
        let bound = self.lateness.iter().map(|(bound, _)| *bound);
        let mut bound = bound.filter(|&seconds| all > 0.0 && since(seconds) >= 0.99 * all);
        Duration::try_from_secs_f64(bound.next()?).ok()
    }
}

/// Labels and their values.
type Labels = Vec<(String, String)>;

/// Name, labels and value of a row.
fn parts(line: &str) -> Option<(&str, Labels, f64)> {
    let (name, rest) = line.split_once('{')?;
    let (mut rest, mut labels) = (rest, Vec::new());
    while let Some((label, quoted)) = rest.split_once("=\"") {
        let mut value = String::new();
        let mut characters = quoted.char_indices();
        let end = loop {
            match characters.next()? {
                (end, '"') => break end,
                (_, '\\') => match characters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        labels.push((label.to_owned(), value));
        rest = quoted[end + 1..].trim_start_matches(',');
        if rest.starts_with('}') {
            break;
        }
    }
    let value = rest.strip_prefix('}')?.trim().parse().ok()?;
    Some((name, labels, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_with_their_labels() {
        let text = "# HELP glommio_turns_total Turns.\n\
            glommio_executor_info{executor=\"3\",name=\"a\",driver=\"epoll\"} 1\n\
            glommio_turns_total{executor=\"3\",name=\"a \\\"b\\\" {c}, d\"} 17\n\
            nonsense\n\
            glommio_turns_total{executor=\"x\",name=\"\"} 1\n\
            glommio_turns_total{executor=\"4\",name=\"e\"} many\n";
        let reading = Reading::new(text, Instant::now());
        assert_eq!(reading.executors.len(), 1);
        let executor = &reading.executors[&3];
        assert_eq!(executor.name, "a \"b\" {c}, d");
        assert_eq!(executor.driver, "epoll");
        assert_eq!(executor.value("turns_total"), 17.0);
        assert_eq!(executor.value("parks_total"), 0.0);
    }

    #[test]
    fn the_lateness_is_that_since_the_reading_before() {
        let row = |le: &str, count: u64| {
            format!(
                "glommio_timer_lateness_seconds_bucket{{executor=\"1\",name=\"a\",le=\"{le}\"}} {count}\n"
            )
        };
        let read = |rows: &[String]| Reading::new(&rows.concat(), Instant::now());
        let before = read(&[row("0.5", 1000), row("+Inf", 1000)]);
        // One bucket that had nothing in it before.
        let now = read(&[row("0.001", 198), row("0.5", 1200), row("+Inf", 1200)]);
        let late =
            |now: &Reading, before: &Reading| now.executors[&1].lateness_p99(&before.executors[&1]);
        assert_eq!(late(&now, &before), Some(Duration::from_millis(1)));
        assert_eq!(late(&now, &now), None);
        let later = read(&[row("0.001", 198), row("0.5", 1203), row("+Inf", 1203)]);
        assert_eq!(late(&later, &now), Some(Duration::from_millis(500)));
    }
}
