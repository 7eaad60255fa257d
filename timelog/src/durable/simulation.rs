//! A disk in memory that loses what was not synced.
//!
//! Of each file and of the directory it keeps what a process sees, and what is on the device. A sync
//! brings to the device what was written when it began. When the power fails, any part of all other
//! writes may be there, in sectors, also of those that had not ended; of the names that changed, the first
//! so many, or any. When the process is killed, that holds for writes that had not ended alone. It dies at a given operation, in
//! the middle of it: that one may have happened or not, and none after it happens.
//!
//! Operations that are under way together end in any order.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::{Future, pending, poll_fn};
use std::io::{Error, ErrorKind, Result};
use std::rc::Rc;
use std::task::{Poll, Waker};

const SECTOR: usize = 512;

/// The place of a file among all that ever were.
pub(super) type Inode = usize;

#[derive(Clone, Debug, Default)]
struct Content {
    seen: Vec<u8>,
    stable: Vec<u8>,
    /// Those that no sync has brought to the device, in the order in which they began.
    writes: Vec<Write>,
}

#[derive(Clone, Debug)]
struct Write {
    /// The call.
    number: u64,
    at: usize,
    bytes: Vec<u8>,
    has_ended: bool,
}

impl Write {
    /// Any of its sectors.
    fn torn(&self, random: &mut fastrand::Rng) -> Vec<(usize, &[u8])> {
        let sectors = self.bytes.chunks(SECTOR).enumerate();
        let sectors = sectors.filter(|_| random.bool());
        let at = |sector| self.at + sector * SECTOR;
        sectors.map(|(sector, bytes)| (at(sector), bytes)).collect()
    }
}

#[derive(Clone, Debug)]
enum NameChange {
    Created(String, Inode),
    Renamed(String, String),
    Removed(String),
}

/// Kinds of operations, to choose those that fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Open,
    Read,
    Write,
    Sync,
    Names,
}

#[derive(Debug, Default)]
struct State {
    files: Vec<Content>,
    names: BTreeMap<String, Inode>,
    stable_names: BTreeMap<String, Inode>,
    changes: Vec<NameChange>,
    /// Operations so far, and the one at which it dies.
    calls: u64,
    writes: u64,
    dies_at: Option<u64>,
    is_dead: bool,
    waker: Option<Waker>,
    /// The kind that fails from so many operations on.
    fails: Option<(Call, u64, ErrorKind)>,
    failed: u64,
    random: fastrand::Rng,
}

#[derive(Debug)]
pub(super) struct Disk(RefCell<State>);

fn put(content: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[at..end].copy_from_slice(bytes);
}

fn change(names: &mut BTreeMap<String, Inode>, change: &NameChange) {
    match change {
        NameChange::Created(name, inode) => drop(names.insert(name.clone(), *inode)),
        NameChange::Renamed(from, to) => {
            if let Some(inode) = names.remove(from) {
                names.insert(to.clone(), inode);
            }
        }
        NameChange::Removed(name) => drop(names.remove(name)),
    }
}

fn not_found() -> Error {
    ErrorKind::NotFound.into()
}

impl Disk {
    pub fn new(seed: u64) -> Rc<Self> {
        Rc::new(Self(RefCell::new(State {
            random: fastrand::Rng::with_seed(seed),
            ..State::default()
        })))
    }

    /// How many operations there were.
    pub fn calls(&self) -> u64 {
        self.0.borrow().calls
    }

    pub fn dies_after(&self, calls: u64) {
        let mut state = self.0.borrow_mut();
        state.dies_at = Some(state.calls + calls);
    }

    /// All operations of a kind fail after so many.
    pub fn fails_after(&self, call: Call, calls: u64, error: ErrorKind) {
        self.0.borrow_mut().fails = Some((call, calls, error));
    }

    pub fn heals(&self) {
        self.0.borrow_mut().fails = None;
    }

    /// How many operations have failed.
    pub fn failed(&self) -> u64 {
        self.0.borrow().failed
    }

    /// Runs until the disk dies, or to the end: then there is an output.
    pub async fn run<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut future = Box::pin(future);
        poll_fn(|cx| {
            {
                let mut state = self.0.borrow_mut();
                if state.is_dead {
                    return Poll::Ready(None);
                }
                state.waker = Some(cx.waker().clone());
            }
            future.as_mut().poll(cx).map(Some)
        })
        .await
    }

    /// What another process finds after this one was killed.
    pub fn after_kill(&self, seed: u64) -> Rc<Self> {
        let state = self.0.borrow();
        let mut random = fastrand::Rng::with_seed(seed ^ state.calls);
        let mut files = state.files.clone();
        for file in &mut files {
            for write in std::mem::take(&mut file.writes) {
                if write.has_ended {
                    file.writes.push(write);
                    continue;
                }
                let (stays, is_torn) = (random.bool(), random.bool());
                let sectors = match (stays, is_torn) {
                    (false, _) => Vec::new(),
                    (true, false) => vec![(write.at, &write.bytes[..])],
                    (true, true) => write.torn(&mut random),
                };
                for (at, bytes) in sectors {
                    put(&mut file.seen, at, bytes);
                    file.writes.push(Write {
                        at,
                        bytes: bytes.to_vec(),
                        has_ended: true,
                        ..write
                    });
                }
            }
        }
        Self::with(
            seed,
            files,
            state.names.clone(),
            State {
                stable_names: state.stable_names.clone(),
                changes: state.changes.clone(),
                ..State::default()
            },
        )
    }

    /// What is found after the power failed.
    pub fn after_power_cut(&self, seed: u64) -> Rc<Self> {
        let state = self.0.borrow();
        let mut random = fastrand::Rng::with_seed(seed ^ 0x9E37_79B9);
        let manner = random.u8(..4);
        let mut files = state.files.clone();
        for file in &mut files {
            for write in std::mem::take(&mut file.writes) {
                let (stays, is_torn) = match manner {
                    0 => (false, false),
                    1 => (true, false),
                    2 => (random.bool(), false),
                    _ => (random.bool(), random.bool()),
                };
                if stays && is_torn {
                    for (at, bytes) in write.torn(&mut random) {
                        put(&mut file.stable, at, bytes);
                    }
                } else if stays {
                    put(&mut file.stable, write.at, &write.bytes);
                }
            }
            file.seen = file.stable.clone();
        }
        let mut names = state.stable_names.clone();
        let kept = match manner {
            0 => 0,
            1 => state.changes.len(),
            _ => random.usize(..=state.changes.len()),
        };
        for it in &state.changes[..kept] {
            // A directory need not keep the order of its changes either.
            if manner < 3 || random.bool() {
                change(&mut names, it);
            }
        }
        let stable_names = names.clone();
        Self::with(
            seed,
            files,
            names,
            State {
                stable_names,
                ..State::default()
            },
        )
    }

    fn with(
        seed: u64,
        files: Vec<Content>,
        names: BTreeMap<String, Inode>,
        rest: State,
    ) -> Rc<Self> {
        Rc::new(Self(RefCell::new(State {
            files,
            names,
            random: fastrand::Rng::with_seed(seed),
            ..rest
        })))
    }

    /// The content of a file, to look at and to damage.
    pub fn edit<T>(&self, name: &str, edit: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut state = self.0.borrow_mut();
        let inode = state.names[name];
        let file = &mut state.files[inode];
        let edited = edit(&mut file.seen);
        file.stable = file.seen.clone();
        edited
    }

    pub fn all_names(&self) -> Vec<String> {
        self.0.borrow().names.keys().cloned().collect()
    }

    /// A file with this content, in the place of one of that name.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let mut state = self.0.borrow_mut();
        let inode = state.files.len();
        state.files.push(Content {
            seen: bytes.to_vec(),
            stable: bytes.to_vec(),
            writes: Vec::new(),
        });
        state.names.insert(name.to_owned(), inode);
        state.stable_names.insert(name.to_owned(), inode);
    }

    pub fn forget(&self, name: &str) {
        let mut state = self.0.borrow_mut();
        state.names.remove(name);
        state.stable_names.remove(name);
    }

    /// Counts an operation, and does it unless it fails. If the disk dies in it, it may be done, and
    /// does not end.
    async fn call<T>(&self, call: Call, act: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        // As through a ring: others run before it is done, and may be done first.
        let turns = self.0.borrow_mut().random.u8(1..4);
        for _ in 0..turns {
            glommio::executor().yield_now().await;
        }
        let done = {
            let mut state = self.0.borrow_mut();
            let state = &mut *state;
            state.calls += 1;
            let dies = state.dies_at.is_some_and(|at| state.calls >= at);
            if dies {
                if !state.is_dead && state.random.bool() {
                    let _ = act(state);
                }
                state.is_dead = true;
                None
            } else {
                let failed = match &mut state.fails {
                    Some((failing, 0, error)) if *failing == call => Some(*error),
                    Some((failing, left, _)) if *failing == call => {
                        *left -= 1;
                        None
                    }
                    _ => None,
                };
                Some(match failed {
                    Some(error) => {
                        state.failed += 1;
                        Err(error.into())
                    }
                    None => act(state),
                })
            }
        };
        match done {
            Some(done) => done,
            None => {
                let waker = self.0.borrow_mut().waker.take();
                if let Some(waker) = waker {
                    waker.wake();
                }
                pending().await
            }
        }
    }

    pub async fn names(&self) -> Result<Vec<String>> {
        self.call(Call::Read, |state| {
            Ok(state.names.keys().cloned().collect())
        })
        .await
    }

    pub async fn open(&self, name: &str, is_new: bool) -> Result<Inode> {
        self.call(Call::Open, |state| {
            if !is_new {
                return state.names.get(name).copied().ok_or_else(not_found);
            }
            if state.names.contains_key(name) {
                return Err(ErrorKind::AlreadyExists.into());
            }
            let inode = state.files.len();
            state.files.push(Content::default());
            let created = NameChange::Created(name.to_owned(), inode);
            change(&mut state.names, &created);
            state.changes.push(created);
            Ok(inode)
        })
        .await
    }

    pub async fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.call(Call::Names, |state| {
            if !state.names.contains_key(from) {
                return Err(not_found());
            }
            let renamed = NameChange::Renamed(from.to_owned(), to.to_owned());
            change(&mut state.names, &renamed);
            state.changes.push(renamed);
            Ok(())
        })
        .await
    }

    pub async fn remove(&self, name: &str) -> Result<()> {
        self.call(Call::Names, |state| {
            if !state.names.contains_key(name) {
                return Err(not_found());
            }
            let removed = NameChange::Removed(name.to_owned());
            change(&mut state.names, &removed);
            state.changes.push(removed);
            Ok(())
        })
        .await
    }

    pub async fn sync_names(&self) -> Result<()> {
        self.call(Call::Sync, |state| {
            state.changes.clear();
            state.stable_names = state.names.clone();
            Ok(())
        })
        .await
    }

    pub async fn size(&self, inode: Inode) -> Result<u64> {
        self.call(Call::Read, |state| Ok(state.files[inode].seen.len() as u64))
            .await
    }

    pub async fn write(&self, inode: Inode, bytes: &[u8], position: u64) -> Result<()> {
        let at = position as usize;
        let number = {
            let state = &mut *self.0.borrow_mut();
            state.writes += 1;
            if !state.is_dead {
                state.files[inode].writes.push(Write {
                    number: state.writes,
                    at,
                    bytes: bytes.to_vec(),
                    has_ended: false,
                });
            }
            state.writes
        };
        let written = self.call(Call::Write, |state| {
            let file = &mut state.files[inode];
            put(&mut file.seen, at, bytes);
            let mut writes = file.writes.iter_mut();
            let write = writes.find(|write| write.number == number);
            write.expect("no sync takes what has not ended").has_ended = true;
            Ok(())
        });
        let written = written.await;
        if written.is_err() {
            let writes = &mut self.0.borrow_mut().files[inode].writes;
            writes.retain(|write| write.number != number);
        }
        written
    }

    pub async fn read(&self, inode: Inode, position: u64, length: usize) -> Result<Vec<u8>> {
        self.call(Call::Read, |state| {
            let seen = &state.files[inode].seen;
            let start = (position as usize).min(seen.len());
            Ok(seen[start..seen.len().min(start + length)].to_vec())
        })
        .await
    }

    pub async fn sync(&self, inode: Inode) -> Result<()> {
        let ended: Vec<u64> = {
            let writes = &self.0.borrow().files[inode].writes;
            let ended = writes.iter().filter(|write| write.has_ended);
            ended.map(|write| write.number).collect()
        };
        self.call(Call::Sync, |state| {
            let file = &mut state.files[inode];
            let (synced, rest) = std::mem::take(&mut file.writes)
                .into_iter()
                .partition::<Vec<_>, _>(|write| ended.contains(&write.number));
            file.writes = rest;
            for write in synced {
                put(&mut file.stable, write.at, &write.bytes);
            }
            Ok(())
        })
        .await
    }
}
