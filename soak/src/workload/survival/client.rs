//! A client: has numbers stored, until each is confirmed. In the end, what the service has stored is held against what its
//! clients were told.

use std::collections::{BTreeSet, VecDeque};
use std::io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, TimedOut, UnexpectedEof};

use serde::{Deserialize, Serialize};

use super::protocol::{Deaths, Frame, What};
use super::shard::Stored;
use crate::check::invariants::Count;
use crate::workload::prelude::*;

struct Client {
    checker: Rc<Checker>,
    rng: Rng,
    id: u32,
    /// Numbers from here on have never been sent.
    next: u64,
    /// Those that are not confirmed.
    pending: VecDeque<u64>,
    told: Told,
    deaths: Deaths,
}

/// What a client has seen of the service.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    pub(super) confirmed: u64,
    /// Shards that were asked to die.
    pub(super) deaths: u64,
    /// Connections that ended before the client had done with them.
    pub(super) broken: u64,
}

/// Has clients make requests until the run drains. What they were told.
pub(super) async fn run_all(
    checker: &Rc<Checker>,
    seed: u64,
    clients: usize,
    address: &str,
    deaths: &Deaths,
) -> Vec<(u32, Told)> {
    let clients = (0..clients as u32).map(|id| {
        let client = Client {
            checker: Rc::clone(checker),
            rng: stream(seed, STREAM + u64::from(id)),
            id,
            next: 0,
            pending: VecDeque::new(),
            told: Told::default(),
            deaths: deaths.clone(),
        };
        spawn_local(client.run(address.to_owned()))
    });
    let mut told = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        told.push(client.await);
    }
    told
}

impl Client {
    /// One connection after the other, until the run drains and all numbers are confirmed.
    async fn run(mut self, address: String) -> (u32, Told) {
        let mut failures = 0;
        loop {
            let began = clock::now();
            let Err(error) = self.connection(&address).await else {
                break;
            };
            let is_death = match error.kind() {
                UnexpectedEof | ConnectionReset | BrokenPipe => true,
                ConnectionRefused | TimedOut => self.deaths.explain_silence(began),
                _ => false,
            };
            self.checker.holds(Invariant::Confirmed, is_death, || {
                format!("client {} was refused or not answered: {error}", self.id)
            });
            self.told.broken += 1;
            failures = if is_death { 0 } else { failures + 1 };
            if failures == FAILURES_MAX {
                break;
            }
            if self.deaths.are_power_cuts() {
                self.checker.pause(PAUSE_MIN).await;
            }
        }
        (self.id, self.told)
    }

    /// Batch after batch. An error: the connection broke, as it does when its shard dies.
    async fn connection(&mut self, address: &str) -> io::Result<()> {
        // What is not answered by then never will be.
        let patience = match self.deaths.are_power_cuts() {
            true => PATIENCE_SIMULATED,
            false => self.checker.control.patience() * 2,
        };
        let mut stream = TcpStream::connect_timeout(address, patience).await?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        let mut life = None;
        loop {
            let is_draining = self.checker.control.is_draining();
            if is_draining && self.pending.is_empty() {
                return Ok(());
            }
            let batch = self.batch(is_draining);
            let bytes: Vec<u8> = batch.iter().flat_map(|it| it.encode()).collect();
            stream.write_all(&bytes).await?;
            for request in batch {
                let mut frame = [0; 16];
                stream.read_exact(&mut frame).await?;
                self.judge(request.number, Frame::decode(frame)?, &mut life)?;
            }
            let pause = self.rng.uniform(PAUSE_MIN, PAUSE_MAX);
            self.checker.pause(pause).await;
        }
    }

    /// What is sent at once: what was sent before and not confirmed, then what is new.
    fn batch(&mut self, is_draining: bool) -> Vec<Frame> {
        let now_ns = self.checker.control.since_start_ns(clock::now());
        let is_rush = now_ns % nanos(RUSH_EVERY) < nanos(RUSH) && !is_draining;
        let size = match is_rush {
            true => RUSH_BATCH,
            false => self.rng.usize(1..=BATCH_MAX),
        };
        while self.pending.len() < size && !is_draining {
            self.pending.push_back(self.next);
            self.next += 1;
        }
        let (from, what) = (self.id, [What::Store, What::Compute][usize::from(is_rush)]);
        let request = |&number| Frame { number, from, what };
        let mut batch: Vec<_> = self.pending.iter().take(size).map(request).collect();
        // Anywhere in the batch, so that requests are on their way, or in a buffer, behind it.
        if self.rng.chance(1, MOVE_ONE_IN) {
            let at = self.rng.usize(..batch.len());
            batch[at].what = What::Move;
        }
        if self.rng.chance(1, DIE_ONE_IN) && !is_draining {
            let last = batch.last_mut().expect("there is one at least");
            let deaths = [What::DieUnheard, What::DieConfirmed];
            last.what = deaths[usize::from(self.rng.bool())];
            self.told.deaths += 1;
            bump(&self.checker.stats.gauges.shards_killed);
        }
        batch
    }

    fn judge(&mut self, number: u64, answer: Frame, life: &mut Option<u32>) -> io::Result<()> {
        let is_next = answer.number == number;
        self.checker.holds(Invariant::Confirmed, is_next, || {
            let (client, answered) = (self.id, answer.number);
            format!("client {client} asked for {number} and was answered for {answered}")
        });
        if !is_next {
            return Err(io::Error::other("an answer is missing"));
        }
        let gauges = &self.checker.stats.gauges;
        let before = life.replace(answer.from);
        if before.is_some_and(|before| before != answer.from) {
            bump(&gauges.connections_moved);
        }
        let pending = self.pending.pop_front();
        assert_eq!(pending, Some(number), "answers come in order");
        if answer.what == What::Stored {
            self.told.confirmed += 1;
        } else {
            bump(&gauges.requests_refused);
            self.pending.push_back(number);
        }
        Ok(())
    }
}

const BATCH_MAX: usize = 10;

/// In so many batches, a connection moves,
const MOVE_ONE_IN: u64 = 3;

/// or a shard dies.
const DIE_ONE_IN: u64 = 80;

/// Now and then all ask for much at the same time.
const RUSH: Duration = Duration::from_millis(100);
const RUSH_EVERY: Duration = Duration::from_secs(4);
const RUSH_BATCH: usize = 32;

const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(40);

/// A node without power does not say that its connections are gone. Longer than two packets in a row are lost.
const PATIENCE_SIMULATED: Duration = Duration::from_secs(1);

const FAILURES_MAX: usize = 2;

pub(super) const CLIENTS: usize = 6;

/// Apart from all others that draw from the seed.
const STREAM: u64 = 1 << 50;

/// What the service says in the end, as a line of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Left {
    /// More than in the beginning.
    pub(super) descriptors: i64,
    /// What was found of pools that are replaced, by the place of the promise, and the first violations in words.
    pub(super) pools: Vec<(usize, Count)>,
    pub(super) words: Vec<String>,
    /// Of each client: how many numbers, and the one after the greatest.
    pub(super) stored: Vec<(u32, [u64; 2])>,
}

impl Left {
    pub(super) fn new(descriptors: i64, stored: Stored) -> Self {
        let of = |(client, numbers): (u32, BTreeSet<u64>)| {
            let next = numbers.last().map_or(0, |last| last + 1);
            (client, [numbers.len() as u64, next])
        };
        Left {
            descriptors,
            pools: Vec::new(),
            words: Vec::new(),
            stored: stored.into_iter().map(of).collect(),
        }
    }
}

/// Holds what the service says in the end against what its clients were told.
pub(super) fn judge(checker: &Checker, told: &[(u32, Told)], left: io::Result<Left>) {
    let left = match left {
        Ok(left) => left,
        Err(error) => {
            return checker.holds(Invariant::Confirmed, false, || {
                format!("the service did not end well: {error}")
            });
        }
    };
    let more = left.descriptors;
    checker.check(Invariant::Confirmed, more.unsigned_abs(), || {
        format!("the service has {more} more descriptors than before")
    });
    for (promise, count) in left.pools {
        checker.enter(Invariant::ALL[promise], count, || left.words.join("; "));
    }
    for &(id, told) in told {
        let stored = left.stored.iter().find(|stored| stored.0 == id);
        let stored = stored.map_or([0; 2], |stored| stored.1);
        let is_stored = stored == [told.confirmed; 2];
        checker.holds(Invariant::Confirmed, is_stored, || {
            format!("client {id} was told {told:?}, and there is {stored:?}")
        });
    }
    if checker.control.is_simulated() {
        // All connections break there with one death, and others of a network that is slow.
        return;
    }
    let deaths: u64 = told.iter().map(|(_, told)| told.deaths).sum();
    let broken: u64 = told.iter().map(|(_, told)| told.broken).sum();
    // A connection that takes the place of a broken one may be given to the same shard before that
    // has left.
    let excused = deaths * told.len() as u64 * 2;
    checker.check(Invariant::Confirmed, broken.saturating_sub(excused), || {
        format!("{broken} connections broke, and only {deaths} shards died")
    });
}
