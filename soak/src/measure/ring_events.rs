//! What the library says in its log: what became of its rings on this kernel, and what it complains of.
//!
//! A listener of our own instead of a crate: two kinds of events are kept, and nothing is written while a run goes on. All
//! other events are off where they are made, at the cost of a load.

use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

use glommio::{GlommioError, LocalExecutorBuilder};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber, span};

/// Listens from now on. Rings that were set up before are not known.
pub(crate) fn install() {
    // Only this function sets the process's listener, and one that is set stays.
    let _ = tracing::subscriber::set_global_default(Listener);
}

/// Sets up a ring and drops it, so that a run can say from its first line on what this kernel offers.
///
/// # Errors
///
/// The library's own, which says what to change, if it cannot run here at all.
pub(crate) fn probe() -> Result<(), GlommioError<()>> {
    LocalExecutorBuilder::default().make().map(drop)
}

/// What the rings of this process are: all alike, as a rule.
pub(crate) fn rings() -> String {
    heard().rings.join(" | ")
}

/// The first warnings and errors of the library.
pub(crate) fn complaints() -> Vec<String> {
    heard().complaints.clone()
}

/// Counts the complaints with this text from now on.
pub(crate) fn watch_for(text: &'static str) {
    heard().watched = (text, 0);
}

/// How many there were.
pub(crate) fn watched() -> usize {
    heard().watched.1
}

fn heard() -> MutexGuard<'static, Heard> {
    // A thread that panicked left counts that are still good.
    HEARD.lock().unwrap_or_else(PoisonError::into_inner)
}

static HEARD: Mutex<Heard> = Mutex::new(Heard {
    rings: Vec::new(),
    complaints: Vec::new(),
    watched: ("", 0),
});

struct Heard {
    /// Each kind once: as many at most as there are modes and sets of features.
    rings: Vec<String>,
    complaints: Vec<String>,
    watched: (&'static str, usize),
}

struct Listener;

fn is_complaint(metadata: &Metadata<'_>) -> bool {
    *metadata.level() <= Level::WARN
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_about_rings = || metadata.fields().field("driver").is_some();
        metadata.target().split("::").next() == Some("glommio")
            && (is_complaint(metadata) || is_about_rings())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::DEBUG)
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut heard = heard();
        if !is_complaint(event.metadata()) {
            let ring = fields.ring();
            if !heard.rings.contains(&ring) {
                heard.rings.push(ring);
            }
            return;
        }
        let level = event.metadata().level().as_str().to_lowercase();
        let words = format!("{level}: {}", fields.words());
        let (watched, count) = &mut heard.watched;
        *count += usize::from(words.contains(*watched));
        if heard.complaints.len() < COMPLAINTS_KEPT {
            heard.complaints.push(words);
        }
    }

    // The library makes no spans.
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// Of an event.
#[derive(Default)]
struct Fields(Vec<(&'static str, String)>);

impl Fields {
    fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(it, _)| *it == name);
        found.map_or("", |(_, value)| value)
    }

    fn ring(&self) -> String {
        let mut words = self.get("driver").to_owned();
        for (before, name) in [
            (", mode ", "mode"),
            ("; the kernel refuses ", "refused"),
            ("; uses ", "uses"),
            ("; the kernel lacks ", "lacks"),
            ("; told to do without ", "without"),
        ] {
            let value = self.get(name);
            if !value.is_empty() {
                words = words + before + &value.replace(',', ", ");
            }
        }
        words
    }

    fn words(&self) -> String {
        let others = self.0.iter().filter(|(name, _)| *name != "message");
        let others = others.map(|(name, value)| format!(" {name}={value}"));
        self.get("message").to_owned() + &others.collect::<String>()
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push((field.name(), format!("{value:?}")));
    }

    /// Without the quotes of `Debug`.
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.to_owned()));
    }
}

const COMPLAINTS_KEPT: usize = 8;
