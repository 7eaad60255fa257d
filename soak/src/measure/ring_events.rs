//! What the library says in its log: what became of its rings on this kernel, and what it complains
//! of.
//!
//! A listener of our own instead of a crate: two kinds of events are kept, and nothing is written
//! while a run goes on. All other events are off where they are made, at the cost of a load.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use glommio::{GlommioError, LocalExecutorBuilder};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber, span};

use crate::record::Setup;

/// Listens from now on. Rings that were set up before are not known.
pub(crate) fn install() {
    LISTENER.get_or_init(|| {
        let listener = Arc::new(Listener::default());
        // Only this function sets the process's listener, and only once.
        let _ = tracing::subscriber::set_global_default(Arc::clone(&listener));
        listener
    });
}

/// Sets up a ring and drops it, so that a run can say from its first line on what this kernel
/// offers.
///
/// # Errors
///
/// The library's own, which says what to change, if it cannot run here at all.
pub(crate) fn probe() -> Result<(), GlommioError<()>> {
    LocalExecutorBuilder::default().make().map(drop)
}

/// What the rings of this process are, in words; `None` before the first.
pub(crate) fn summary() -> Option<String> {
    let setups = setups();
    let words: Vec<String> = setups.iter().map(Setup::to_string).collect();
    (!words.is_empty()).then(|| words.join(" | "))
}

/// What the rings of this process are: one entry if all are alike, which is the rule.
pub(crate) fn setups() -> Vec<Setup> {
    heard(|heard| heard.setups.clone())
}

/// What the library has warned of, and its errors.
pub(crate) fn complaints() -> Complaints {
    heard(|heard| heard.complaints.clone())
}

/// Counts the complaints with this text from now on.
pub(crate) fn watch_for(text: &'static str) {
    if let Some(listener) = LISTENER.get() {
        listener.heard().watched = Some((text, 0));
    }
}

/// How many there were.
pub(crate) fn watched() -> usize {
    heard(|heard| heard.watched.map_or(0, |(_, count)| count))
}

fn heard<T: Default>(read: impl FnOnce(&Heard) -> T) -> T {
    let listener = LISTENER.get();
    listener.map_or_else(T::default, |listener| read(&listener.heard()))
}

static LISTENER: OnceLock<Arc<Listener>> = OnceLock::new();

/// Warnings and errors in the library's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Complaints {
    pub(crate) count: u64,
    /// The first few, in words.
    pub(crate) first: Vec<String>,
}

#[derive(Default)]
struct Heard {
    setups: Vec<Setup>,
    complaints: Complaints,
    watched: Option<(&'static str, usize)>,
}

impl Heard {
    fn note_ring(&mut self, setup: Setup) {
        match self.setups.iter_mut().find(|known| known.is_like(&setup)) {
            Some(known) => {
                known.rings += 1;
                known.entries = known.entries.min(setup.entries);
            }
            // As many kinds at most as there are modes and sets of features.
            None => self.setups.push(Setup { rings: 1, ..setup }),
        }
    }

    fn note_complaint(&mut self, words: String) {
        self.complaints.count += 1;
        if let Some((text, count)) = &mut self.watched {
            *count += usize::from(words.contains(*text));
        }
        if self.complaints.first.len() < COMPLAINTS_KEPT {
            self.complaints.first.push(words);
        }
    }
}

const COMPLAINTS_KEPT: usize = 8;

#[derive(Default)]
struct Listener(Mutex<Heard>);

impl Listener {
    fn heard(&self) -> MutexGuard<'_, Heard> {
        // A thread that panicked left counts that are still good.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_of_the_library(metadata: &Metadata<'_>) -> bool {
    metadata.target().split("::").next() == Some("glommio")
}

fn is_complaint(metadata: &Metadata<'_>) -> bool {
    *metadata.level() <= Level::WARN
}

fn is_about_rings(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("glommio::ring") && metadata.fields().field("driver").is_some()
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        is_of_the_library(metadata) && (is_complaint(metadata) || is_about_rings(metadata))
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::DEBUG)
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut reading = Reading::default();
        event.record(&mut reading);
        if is_complaint(metadata) {
            let level = metadata.level().as_str().to_lowercase();
            self.heard()
                .note_complaint(format!("{level}: {}", reading.words()));
        } else {
            self.heard().note_ring(reading.setup);
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

/// The fields of an event.
#[derive(Default)]
struct Reading {
    setup: Setup,
    message: String,
    others: Vec<String>,
}

impl Reading {
    fn words(&self) -> String {
        let mut words = vec![self.message.clone()];
        words.extend(self.others.iter().cloned());
        words.join(" ")
    }

    fn note(&mut self, name: &str, value: String) {
        let list = || {
            let names = value.split(',').filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        };
        match name {
            "message" => self.message = value,
            "driver" => self.setup.driver = value,
            "mode" => self.setup.mode = value,
            "refused" => self.setup.refused = list(),
            "uses" => self.setup.uses = list(),
            "lacks" => self.setup.lacks = list(),
            "without" => self.setup.without = list(),
            _ => self.others.push(format!("{name}={value}")),
        }
    }
}

impl Visit for Reading {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.note(field.name(), format!("{value:?}"));
    }

    /// Without the quotes of `Debug`.
    fn record_str(&mut self, field: &Field, value: &str) {
        self.note(field.name(), value.to_owned());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "entries" => self.setup.entries = value,
            name => self.note(name, value.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is heard while `f` runs.
    fn hearing(f: impl FnOnce()) -> Heard {
        let listener = Arc::new(Listener::default());
        tracing::subscriber::with_default(Arc::clone(&listener), f);
        std::mem::take(&mut *listener.heard())
    }

    #[test]
    fn every_ring_tells_how_it_was_set_up() {
        let heard = hearing(|| {
            let make = |depth| LocalExecutorBuilder::default().ring_depth(depth).make();
            for depth in [64, 16, 32] {
                make(depth).expect("this machine has io_uring");
            }
        });
        let [setup] = heard.setups.as_slice() else {
            panic!("all rings of a process are alike: {:?}", heard.setups);
        };
        assert_eq!((setup.rings, setup.entries), (3, 16));
        assert_eq!(setup.driver, "io_uring");
        let forced = std::env::var("GLOMMIO_RING").unwrap_or_default();
        match setup.mode.as_str() {
            "defer" => assert!(setup.refused.is_empty(), "it is the best: {setup:?}"),
            "coop" => assert!(setup.refused == ["defer"] || forced == "coop", "{setup:?}"),
            "plain" => assert!(setup.refused.len() == 2 || !forced.is_empty(), "{setup:?}"),
            mode => panic!("{mode} is no mode"),
        }
        let mut all = [&setup.uses[..], &setup.lacks, &setup.without].concat();
        all.sort();
        let known = [
            "absolute_wait",
            "links",
            "make_directory",
            "no_iowait",
            "paths",
            "poll_multi",
            "registered",
            "registered_ring",
            "truncate",
        ];
        assert_eq!(all, known);
        assert_eq!(heard.complaints, Complaints::default());
    }

    fn says(mode: &str, refused: &str, uses: &str, lacks: &str, without: &str) {
        tracing::debug!(target: "glommio::ring::setup", driver = "io_uring", %mode, refused, entries = 8_u32, %uses, %lacks, %without, "a ring");
    }

    #[test]
    fn rings_that_differ_are_told_apart() {
        let heard = hearing(|| {
            says("defer", "", "a,b", "", "");
            says("plain", "defer,coop", "", "a,b", "");
            says("defer", "", "a", "", "b");
            says("defer", "", "a,b", "", "");
            tracing::debug!(target: "glommio::ring::epoll", driver = "epoll", entries = 8_u32, "a ring");
        });
        let words: Vec<String> = heard.setups.iter().map(Setup::to_string).collect();
        assert_eq!(
            words,
            [
                "io_uring, mode defer; uses a, b",
                "io_uring, mode plain; the kernel refuses defer, coop; the kernel lacks a, b",
                "io_uring, mode defer; uses a; told to do without b",
                "epoll",
            ]
        );
        let rings: Vec<u64> = heard.setups.iter().map(|setup| setup.rings).collect();
        assert_eq!(rings, [2, 1, 1, 1]);
    }

    #[test]
    fn complaints_are_counted_and_the_first_are_kept() {
        let heard = hearing(|| {
            for count in 0..20 {
                tracing::warn!(target: "glommio::mailbox", count, "not today");
            }
            tracing::error!(target: "glommio", errno = %"EIO", "broken");
            tracing::info!(target: "glommio::ring::setup", "no complaint");
            tracing::error!(target: "glommios", "of another library");
        });
        assert_eq!(heard.complaints.count, 21);
        assert_eq!(heard.complaints.first.len(), COMPLAINTS_KEPT);
        assert_eq!(heard.complaints.first[0], "warn: not today count=0");
        assert!(heard.setups.is_empty());
        let one = hearing(|| tracing::error!(target: "glommio", errno = %"EIO", "broken"));
        assert_eq!(one.complaints.first, ["error: broken errno=EIO"]);
    }
}
