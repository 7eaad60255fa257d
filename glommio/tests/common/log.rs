//! Listening to what the library logs.

use std::fmt::Debug;
use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use glommio::LocalExecutor;
use tracing::field::{Field, Visit};
use tracing::{Dispatch, Event, Level, Metadata, Subscriber, span};

/// An event in the log.
#[derive(Clone, Debug)]
pub struct Heard {
    pub level: Level,
    pub message: String,
    fields: Vec<(&'static str, String)>,
}

impl Heard {
    /// What the event says under this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// While there is one subscriber alone, `tracing` asks the thread that first comes to an event whether
/// anybody wants it, and keeps the answer for all threads: that of a test which does not listen.
static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Listener::default()));

/// What this thread logged while `f` ran, and whatever other threads log for it.
pub fn hearing<R>(f: impl FnOnce() -> R) -> (R, Vec<Heard>) {
    hearing_so_far(|_| f())
}

/// As [`hearing`], with what was logged so far at hand.
pub fn hearing_so_far<R>(f: impl FnOnce(&dyn Fn() -> Vec<Heard>) -> R) -> (R, Vec<Heard>) {
    let _another = LazyLock::force(&ANOTHER);
    let listener = Listener::default();
    let so_far = || listener.0.lock().expect("no thread panicked").clone();
    let result = tracing::subscriber::with_default(listener.clone(), || f(&so_far));
    (result, so_far())
}

/// As [`hearing`], on all threads of this process, which is a child of a test, from now on. What was
/// logged so far.
pub fn hearing_everywhere() -> impl Fn() -> Vec<Heard> {
    let listener = Listener::default();
    tracing::subscriber::set_global_default(listener.clone()).expect("a child has no other log");
    move || listener.0.lock().expect("no thread panicked").clone()
}

/// Calls `f` on this thread, where whatever is logged panics, with a payload that panics when it is
/// dropped. Returns how often that happened.
pub fn with_panicking_log<R>(f: impl FnOnce() -> R) -> (R, usize) {
    let_first_executor_log();
    let _another = LazyLock::force(&ANOTHER);
    let log = Panicking::default();
    let result = tracing::subscriber::with_default(log.clone(), f);
    (result, log.0.load(Ordering::Relaxed))
}

/// As [`with_panicking_log`], on all threads of this process, which is a child of a test, from now
/// on.
pub fn panicking_log_everywhere() -> impl Fn() -> usize {
    let_first_executor_log();
    let log = Panicking::default();
    tracing::subscriber::set_global_default(log.clone()).expect("a child has no other log");
    move || log.0.load(Ordering::Relaxed)
}

/// The first executor of a process logs that there is no io_uring. A panic there would end the test.
fn let_first_executor_log() {
    drop(LocalExecutor::default());
}

#[derive(Clone, Default)]
struct Panicking(Arc<AtomicUsize>);

impl Subscriber for Panicking {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic_any(super::bomb());
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Vec<Heard>>>);

impl Subscriber for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &Event<'_>) {
        let mut heard = Heard {
            level: *event.metadata().level(),
            message: String::new(),
            fields: Vec::new(),
        };
        event.record(&mut heard);
        self.0.lock().expect("no thread panicked").push(heard);
    }

    /// A span is kept as an event whose message is its name.
    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut heard = Heard {
            level: *span.metadata().level(),
            message: span.metadata().name().to_owned(),
            fields: Vec::new(),
        };
        span.record(&mut heard);
        self.0.lock().expect("no thread panicked").push(heard);
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

impl Visit for Heard {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.push((field.name(), value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let value = format!("{value:?}");
        match field.name() {
            "message" => self.message = value,
            name => self.fields.push((name, value)),
        }
    }
}
