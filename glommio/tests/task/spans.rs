//! Tasks with names in the log: each poll is inside the task's span.

use std::fmt::Debug;
use std::sync::atomic::AtomicU64;
use std::sync::{MutexGuard, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

use crate::common::prelude::*;

/// One test at a time, and not the first to make such a span: where several threads do that at
/// once, with different subscribers, `tracing` may have some of them miss it.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    LocalExecutor::default().run(async {
        TaskBuilder::new().name("first").spawn_local(async {}).await;
    });
    guard
}

/// Keeps the spans of this thread.
#[derive(Clone, Default)]
struct Log(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// All that were made, by number: the fields of each, with the span's name in front.
    made: Mutex<Vec<Vec<(String, String)>>>,
    /// Those that are entered now, the outermost first.
    entered: Mutex<Vec<u64>>,
    closed: AtomicUsize,
    /// The spans in which each event was.
    events: Mutex<Vec<(String, Vec<u64>)>>,
}

impl Log {
    fn during<R>(&self, f: impl FnOnce() -> R) -> R {
        tracing::subscriber::with_default(self.clone(), f)
    }

    fn entered(&self) -> Vec<u64> {
        self.0.entered.lock().expect("no thread panicked").clone()
    }

    /// The names of the tasks that an event was in.
    fn tasks_of(&self, event: &str) -> Vec<String> {
        let events = self.0.events.lock().expect("no thread panicked");
        let found = events.iter().find(|(message, _)| message == event);
        let (_, spans) = found.unwrap_or_else(|| panic!("no event {event}"));
        let field = |&id| self.field(id, "name").expect("it has a name");
        spans.iter().map(field).collect()
    }

    /// A field of a span.
    fn field(&self, id: u64, name: &str) -> Option<String> {
        let made = self.0.made.lock().expect("no thread panicked");
        let fields = &made[id as usize - 1];
        let found = fields.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    }

    fn made(&self) -> usize {
        self.0.made.lock().expect("no thread panicked").len()
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let metadata = attributes.metadata();
        assert_eq!(
            (metadata.name(), metadata.target()),
            ("task", "glommio::task")
        );
        assert!(attributes.is_root(), "it has no parent");
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let mut made = self.0.made.lock().expect("no thread panicked");
        made.push(fields.0);
        span::Id::from_u64(made.len() as u64)
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let message = fields.0.into_iter().find(|(name, _)| name == "message");
        let message = message.map_or_else(String::new, |(_, message)| message);
        let entered = self.entered();
        let mut events = self.0.events.lock().expect("no thread panicked");
        events.push((message, entered));
    }

    fn enter(&self, id: &span::Id) {
        let mut entered = self.0.entered.lock().expect("no thread panicked");
        entered.push(id.into_u64());
    }

    fn exit(&self, id: &span::Id) {
        let mut entered = self.0.entered.lock().expect("no thread panicked");
        assert_eq!(
            entered.pop(),
            Some(id.into_u64()),
            "the innermost ends first"
        );
    }

    fn try_close(&self, _: span::Id) -> bool {
        self.0.closed.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
}

#[derive(Default)]
struct Fields(Vec<(String, String)>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name().to_owned(), value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push((field.name().to_owned(), format!("{value:?}")));
    }
}

/// Logs when it is dropped.
struct Farewell(&'static str);

impl Drop for Farewell {
    fn drop(&mut self) {
        tracing::info!("{}", self.0);
    }
}

#[run_test]
fn what_a_named_task_logs_is_in_its_span() {
    let _alone = alone();
    let log = Log::default();
    log.during(|| {
        LocalExecutor::default().run(async {
            let parser = TaskBuilder::new().name("parser").spawn_local(async {
                tracing::info!("first poll");
                yield_now().await;
                tracing::info!("second poll");
                // Inside a poll of another.
                let nested = TaskBuilder::new().name("nested").spawn_local(async {
                    tracing::info!("nested poll");
                    yield_now().await;
                    tracing::info!("later poll");
                });
                tracing::info!("after the spawn");
                nested.await;
            });
            assert!(log.entered().is_empty(), "its first poll is over");
            let plain = spawn_local(async {
                yield_now().await;
                tracing::info!("plain");
            });
            let unnamed = TaskBuilder::new().spawn_local(async {
                tracing::info!("unnamed");
            });
            plain.await;
            unnamed.await;
            parser.await;
            tracing::info!("main");
        });
    });
    for (event, tasks) in [
        ("first poll", &["parser"][..]),
        ("second poll", &["parser"]),
        ("nested poll", &["parser", "nested"]),
        ("after the spawn", &["parser"]),
        ("later poll", &["nested"]),
        ("plain", &[]),
        ("unnamed", &[]),
        ("main", &[]),
    ] {
        assert_eq!(log.tasks_of(event), tasks, "{event}");
    }
    assert_eq!((log.made(), log.0.closed.load(Ordering::Relaxed)), (2, 2));
    assert!(log.entered().is_empty());
}

#[run_test]
fn a_span_tells_executor_queue_name_and_a_number() {
    let _alone = alone();
    let log = Log::default();
    let executor_id = log.during(|| {
        let local = LocalExecutorBuilder::default()
            .make()
            .expect("there is io_uring");
        local.run(async {
            let queue = queue("batch");
            let task = TaskBuilder::new().name("index");
            let task = task.spawn_local_into(
                async {
                    // Into the queue of the task that spawns.
                    TaskBuilder::new().name("part").spawn_local(async {}).await;
                },
                queue,
            );
            task.expect("the queue is there").await;
            TaskBuilder::new().name("other").spawn_local(async {}).await;
        });
        local.id().to_string()
    });
    let expected = [("index", "batch"), ("part", "batch"), ("other", "default")];
    assert_eq!(log.made(), expected.len());
    let mut numbers = Vec::new();
    for (id, (name, queue)) in (1..).zip(expected) {
        let field = |field| log.field(id, field);
        assert_eq!(field("name").as_deref(), Some(name));
        assert_eq!(field("queue").as_deref(), Some(queue), "{name}");
        assert_eq!(field("executor").as_deref(), Some(&*executor_id));
        let number = field("id").and_then(|id| id.parse::<u64>().ok());
        numbers.push(number.expect("it has a number"));
    }
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}

/// However a task ends, its future is dropped inside the span, and the span is closed.
#[run_test]
fn the_end_of_a_task_is_in_its_span() {
    let _alone = alone();
    let log = Log::default();
    log.during(|| {
        let executor = LocalExecutor::default();
        executor.run(async {
            let pending = |name: &'static str| {
                TaskBuilder::new().name(name).spawn_local(async move {
                    let _farewell = Farewell(name);
                    std::future::pending::<()>().await;
                })
            };
            pending("cancelled").cancel().await;
            drop(pending("dropped"));
            pending("left behind").detach();
            let done = TaskBuilder::new().name("done").spawn_local(async {
                let _farewell = Farewell("done");
                yield_now().await;
            });
            done.await;
        });
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            executor.run(async {
                let task = TaskBuilder::new()
                    .name("panicked")
                    .spawn_local::<()>(async {
                        let _farewell = Farewell("panicked");
                        yield_now().await;
                        panic!("on purpose");
                    });
                task.await;
            });
        }));
        assert!(panicked.is_err());
        assert!(log.entered().is_empty(), "the panic has left the span");
        drop(executor);
    });
    for name in ["cancelled", "dropped", "left behind", "done", "panicked"] {
        assert_eq!(log.tasks_of(name), [name]);
    }
    assert_eq!((log.made(), log.0.closed.load(Ordering::Relaxed)), (5, 5));
    assert!(log.entered().is_empty());
}

thread_local! {
    static CALLS: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

/// Panics wherever it hears of a span, or wants none.
struct Hostile {
    wants: bool,
    next: AtomicU64,
}

impl Hostile {
    fn panic(call: &'static str) -> ! {
        CALLS.with_borrow_mut(|calls| calls.push(call));
        std::panic::panic_any(bomb());
    }
}

impl Subscriber for Hostile {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        self.wants
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        // Every second task has a span.
        if id.is_multiple_of(2) {
            Self::panic("new_span");
        }
        span::Id::from_u64(id)
    }
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &span::Id) {
        Self::panic("enter");
    }
    fn exit(&self, _: &span::Id) {
        Self::panic("exit");
    }
    fn try_close(&self, _: span::Id) -> bool {
        Self::panic("try_close");
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
}

/// Runs tasks with names under a log that panics; what it was called for.
fn under_a_hostile_log(wants: bool) -> Vec<&'static str> {
    let next = AtomicU64::new(1);
    tracing::subscriber::with_default(Hostile { wants, next }, || {
        let executor = LocalExecutor::default();
        let output = executor.run(async {
            let task = |n: u64| {
                let task = TaskBuilder::new().name("task");
                task.spawn_local(async move {
                    yield_now().await;
                    n
                })
            };
            let tasks = [1, 2, 3].map(task);
            let mut sum = 0;
            for task in tasks {
                sum += task.await;
            }
            TaskBuilder::new()
                .name("cancelled")
                .spawn_local(std::future::pending::<()>())
                .cancel()
                .await;
            sum
        });
        assert_eq!(output, 6);
        let payload = catch_unwind(AssertUnwindSafe(|| {
            executor.run(async {
                let task = TaskBuilder::new().name("panics");
                task.spawn_local::<()>(async { std::panic::panic_any("on purpose") })
                    .await
            })
        }));
        let payload = payload.map(drop).expect_err("the task's panic arrives");
        assert_eq!(payload.downcast_ref(), Some(&"on purpose"));
    });
    CALLS.take()
}

/// Its panics disturb no task, and do not abort a thread that unwinds.
#[run_test]
fn a_log_that_panics_disturbs_no_task() {
    let _alone = alone();
    let calls = under_a_hostile_log(true);
    for call in ["new_span", "enter", "exit", "try_close"] {
        assert!(calls.contains(&call), "{call} is not in {calls:?}");
    }
}

#[run_test]
fn a_span_that_is_not_wanted_is_neither_made_nor_entered() {
    let _alone = alone();
    assert_eq!(under_a_hostile_log(false), [""; 0]);
}
