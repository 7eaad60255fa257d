//! The text that Prometheus reads.

use glommio::metrics::prometheus_text;
use glommio::{Driver, ShardExitPolicy};

use crate::common::prelude::*;

/// The labels and values of `row`, of the executors whose name contains `name`.
fn rows(text: &str, row: &str, name: &str) -> Vec<(String, f64)> {
    text.lines()
        .filter(|line| line.contains(name))
        .filter_map(|line| line.strip_prefix(row)?.strip_prefix('{'))
        .map(|rest| {
            let (labels, value) = rest.rsplit_once("} ").expect("a row ends with its value");
            (labels.to_owned(), value.parse().expect("a number"))
        })
        .collect()
}

/// Each is described before its first row, and is what the snapshot says.
#[run_test]
fn all_that_is_counted_is_in_the_text() {
    let executor = LocalExecutorBuilder::default()
        .name("counted")
        .make()
        .unwrap();
    executor.run(async {
        for _ in 0..10 {
            sleep(Duration::from_micros(100)).await;
        }
    });
    let now = executor.metrics().snapshot();
    let text = prometheus_text();
    let value = |row: &str| {
        let rows = rows(&text, row, "counted-");
        assert_eq!(rows.len(), 1, "{row}");
        rows[0].1
    };
    assert_eq!(value("glommio_turns_total"), now.turns as f64);
    let polls = now.polls + now.first_polls;
    assert_eq!(value("glommio_polls_total"), polls as f64);
    assert_eq!(value("glommio_timers_armed_total"), now.timers_armed as f64);
    assert_eq!(value("glommio_timers_live"), 0.0);
    assert_eq!(value("glommio_ring_enters_total"), now.ring_enters as f64);
    let lateness = "glommio_timer_lateness_seconds";
    let fired = now.timers_fired as f64;
    assert_eq!(value(&format!("{lateness}_count")), fired);
    assert!(value(&format!("{lateness}_sum")) >= 0.0);
    let buckets = rows(&text, &format!("{lateness}_bucket"), "counted-");
    assert!(buckets.is_sorted_by_key(|(_, count)| *count));
    let (labels, count) = buckets.last().expect("there is one without a bound");
    assert!(labels.ends_with(",le=\"+Inf\""), "{labels}");
    assert_eq!(*count, fired);

    // The name of the last `TYPE`, and how many names there are.
    let (mut described, mut kinds) = ("", BTreeMap::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a kind");
            assert_eq!(kinds.insert(name, kind), None, "{name} is described once");
            let is_total = name.ends_with("_total");
            assert_eq!(is_total, kind == "counter", "{line}");
            described = name;
        } else if !line.starts_with("# HELP ") {
            assert!(line.starts_with(described), "{line}");
        }
    }
    assert!(kinds.len() > 20, "{kinds:?}");
}

/// Also that which an executor has fallen back to.
#[test]
fn the_driver_of_each_executor_is_told() {
    for driver in [Driver::Auto, Driver::Epoll] {
        let builder = LocalExecutorBuilder::default().name("driven");
        let executor = builder.driver(driver).make().unwrap();
        let uses = executor.run(async { glommio::executor().driver() });
        assert_eq!(executor.metrics().snapshot().driver, uses);
        let text = prometheus_text();
        let rows = rows(&text, "glommio_executor_info", "driven-");
        assert_eq!(rows.len(), 1, "{text}");
        let (labels, value) = &rows[0];
        assert!(labels.ends_with(&format!(",driver=\"{uses}\"")), "{labels}");
        assert_eq!(*value, 1.0);
    }
}

#[test]
fn a_name_is_escaped() {
    let executor = LocalExecutorBuilder::default()
        .name("a \"b\"\\\nc")
        .make()
        .unwrap();
    let (id, text) = (executor.id(), prometheus_text());
    let row =
        format!("glommio_turns_total{{executor=\"{id}\",name=\"a \\\"b\\\"\\\\\\nc-{id}\"}} ");
    assert!(text.contains(&row), "{text}");
}

/// Its executor is another one then.
#[run_test]
fn a_shard_keeps_its_number_when_it_is_restarted() {
    let starts = Arc::new(AtomicUsize::new(0));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let shards = {
        let seen = Arc::clone(&seen);
        LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(2))
            .name("restarted")
            .on_shard_end(ShardExitPolicy::Restart { per_minute: 1 })
            .on_all_shards(move || async move {
                let now = executor().metrics().snapshot();
                let mut seen = seen.lock().unwrap_or_else(|it| it.into_inner());
                seen.push((now.shard, now.executor));
                let label = format!("executor=\"{}\",name=", now.executor);
                let text = prometheus_text();
                let row = rows(&text, "glommio_turns_total", &label);
                let shard = now.shard.expect("it is one of a pool");
                assert!(
                    row[0].0.ends_with(&format!(",shard=\"{shard}\"")),
                    "{row:?}"
                );
                drop(seen);
                if starts.fetch_add(1, Ordering::Relaxed) == 0 {
                    std::panic::resume_unwind(Box::new("as planned"));
                }
            })
            .unwrap()
    };
    for ended in shards.join_all() {
        ended.unwrap();
    }
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_unstable();
    let numbers: Vec<_> = seen.iter().map(|(shard, _)| shard.unwrap()).collect();
    assert!(numbers == [0, 0, 1] || numbers == [0, 1, 1], "{seen:?}");
    seen.dedup_by_key(|(_, executor)| *executor);
    assert_eq!(seen.len(), 3, "three executors: {seen:?}");
}
