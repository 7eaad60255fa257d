//! Who may use the state of a log: its handle alone, or readers too.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Appended;
use super::core::Core;
use crate::{Snapshot, Stats, Ts};

/// The state of a log, which is behind a lock once there was a reader.
pub(super) enum State<V> {
    Own(Box<Core<V>>),
    Shared(Arc<Mutex<Core<V>>>),
    /// While one is made of the other.
    Moved,
}

pub(super) enum Access<'l, V> {
    Own(&'l mut Core<V>),
    Locked(MutexGuard<'l, Core<V>>),
}

impl<V> Deref for Access<'_, V> {
    type Target = Core<V>;

    #[inline]
    fn deref(&self) -> &Core<V> {
        match self {
            Self::Own(core) => core,
            Self::Locked(core) => core,
        }
    }
}

impl<V> DerefMut for Access<'_, V> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Core<V> {
        match self {
            Self::Own(core) => core,
            Self::Locked(core) => core,
        }
    }
}

/// A value that panics in its clone or drop leaves a valid log, so the lock is not poisoned by it.
fn lock<V>(core: &Mutex<Core<V>>) -> MutexGuard<'_, Core<V>> {
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Rows that `flush` and `compact` move before readers get their turn.
const PORTION_ROWS: usize = 1 << 14;

impl<V> State<V> {
    #[inline]
    pub fn access(&mut self) -> Access<'_, V> {
        match self {
            Self::Own(core) => {
                // What the caller does may change what they depend on.
                core.plain_appends = 0;
                Access::Own(core)
            }
            Self::Shared(core) => Access::Locked(lock(core)),
            Self::Moved => unreachable!("`share` puts a state back"),
        }
    }

    /// Appends a row if nothing else is to be done for it, or gives its value back. For most rows
    /// this is all of an append.
    #[inline]
    pub fn append_plain(&mut self, ts: Ts, value: V) -> Result<Appended, V>
    where
        V: Clone + 'static,
    {
        match self {
            Self::Own(core) => core.append_plain(ts, value),
            _ => Err(value),
        }
    }

    pub fn look<T>(&self, look: impl FnOnce(&Core<V>) -> T) -> T {
        match self {
            Self::Own(core) => look(core),
            Self::Shared(core) => look(&lock(core)),
            Self::Moved => unreachable!("`share` puts a state back"),
        }
    }

    pub fn share(&mut self) -> Reader<V> {
        let core = match std::mem::replace(self, Self::Moved) {
            Self::Own(core) => Arc::new(Mutex::new(*core)),
            Self::Shared(core) => core,
            Self::Moved => unreachable!("`share` puts a state back"),
        };
        *self = Self::Shared(Arc::clone(&core));
        Reader { core }
    }

    /// How many rows calls move at once that move all.
    pub fn portion(&self) -> usize {
        match self {
            Self::Shared(_) => PORTION_ROWS,
            _ => usize::MAX,
        }
    }
}

/// Takes snapshots of a log without borrowing it, from [`MemLog::reader`](crate::MemLog::reader).
///
/// A snapshot shows every call of the log that has returned. Taking one waits for a call that is
/// under way: at most for one write or step; `flush` and `compact` let readers in between. Reading
/// a snapshot takes no lock.
///
/// A clone costs O(1). `Send` and `Sync` when the values are. It outlives the log, and then shows
/// its last state.
///
/// # Deadlocks
/// The clone and the drop of a value must not use a reader of the log that holds the value.
///
/// # Examples
///
/// ```
/// use timelog::{Config, MemLog};
///
/// let mut log = MemLog::new(Config::default())?;
/// let reader = log.reader();
/// let readers: Vec<_> = (0..2)
///     .map(|_| {
///         let reader = reader.clone();
///         std::thread::spawn(move || while reader.snapshot().count(..) < 1_000 {})
///     })
///     .collect();
/// for ts in 0..1_000 {
///     log.append(ts, ts)?;
/// }
/// readers.into_iter().for_each(|reader| reader.join().unwrap());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Reader<V> {
    core: Arc<Mutex<Core<V>>>,
}

impl<V> Clone for Reader<V> {
    fn clone(&self) -> Self {
        Self {
            core: Arc::clone(&self.core),
        }
    }
}

impl<V> fmt::Debug for Reader<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

impl<V: Clone> Reader<V> {
    /// What the log holds now; as [`MemLog::snapshot`](crate::MemLog::snapshot).
    pub fn snapshot(&self) -> Snapshot<V> {
        lock(&self.core).snapshot()
    }

    /// The log in numbers; as [`MemLog::stats`](crate::MemLog::stats).
    pub fn stats(&self) -> Stats {
        lock(&self.core).stats()
    }
}
