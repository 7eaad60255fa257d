//! A service whose shards die, and clients that hold it to what it has confirmed.
//!
//! ```text
//!   executor `survival`                     process of its own
//!     clients ── numbers ──▶ TCP ──▶  shards ── entries ──▶ store
//!             ◀─ confirmed ─              │  ▲
//!                                         └──┘ connections move by a mesh
//! ```
//!
//! Clients ask now and then that the shard which serves them dies, before or after it has confirmed,
//! that it hands the connection to another one with requests in its buffer, and, all at the same
//! time, for more than the shards can do. A shard that dies is restarted by its pool and joins the
//! next mesh; a client whose connection ends connects again, and repeats what was not confirmed.
//!
//! In a simulation the service is a node of several shards, and a shard that dies takes the others along: its node loses its
//! power. The store is with the clients.
//!
//! In the end the store has the numbers that were confirmed and no others, and the process the
//! descriptors that it had in the beginning. It takes a few hundredths of a core.

mod client;
mod deaths;
mod protocol;
pub(crate) mod service;
mod shard;
#[cfg(feature = "simulation")]
mod simulated;
mod store;

use std::env;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::rc::Rc;

use glommio::{GlommioError, executor, spawn_local};
use support::generator::stream;

use self::client::{Client, Told};
use self::deaths::Deaths;
use crate::check::checker::Checker;
use crate::check::invariants::Invariant;
use crate::check::probe::Workload;
use crate::workload::executor::{Executor, Plan};

/// Starts the service, and the executor of its clients.
pub(crate) fn start(plan: &Plan) -> Result<Vec<Executor>, GlommioError<()>> {
    #[cfg(feature = "simulation")]
    if let Some(nodes) = &plan.nodes {
        return simulated::start(plan, nodes);
    }
    let seed = plan.seed;
    let service = Service::start()?;
    let clients = plan.scaled(CLIENTS, 1);
    let work = move |checker: Rc<Checker>| async move {
        checker.spawn_sweeper();
        let (address, deaths) = (service.address.to_string(), Deaths::default());
        let told = run_clients(&checker, seed, clients, &address, &deaths).await;
        let left = executor().spawn_blocking(move || service.end()).await;
        judge(&checker, &told, left);
        checker.settle().await;
    };
    Ok(vec![Executor::start(
        plan,
        Workload::Survival,
        "survival",
        work,
    )?])
}

/// Has clients make requests until the run drains. What they were told.
async fn run_clients(
    checker: &Rc<Checker>,
    seed: u64,
    clients: usize,
    address: &str,
    deaths: &Deaths,
) -> Vec<(u32, Told)> {
    let clients = (0..clients as u32).map(|id| {
        let rng = stream(seed, STREAM + u64::from(id));
        let client = Client::new(checker, rng, id, deaths.clone());
        spawn_local(client.run(address.to_owned()))
    });
    let mut told = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        told.push(client.await);
    }
    told
}

/// Holds what the service says in the end against what its clients were told.
fn judge(checker: &Checker, told: &[(u32, Told)], left: io::Result<Left>) {
    let left = match left {
        Ok(left) => left,
        Err(error) => {
            return checker.holds(Invariant::Confirmed, false, || {
                format!("the service did not end well: {error}")
            });
        }
    };
    checker.check(
        Invariant::Confirmed,
        left.descriptors.unsigned_abs(),
        || {
            format!(
                "the service has {} more descriptors than before",
                left.descriptors
            )
        },
    );
    for &(id, told) in told {
        let stored = left.stored.iter().find(|stored| stored.client == id);
        let is_stored = stored.map_or(told.confirmed == 0, |stored| {
            stored.count == told.confirmed && stored.next == told.confirmed
        });
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

/// The process that serves.
struct Service {
    child: Child,
    told: BufReader<ChildStdout>,
    address: SocketAddr,
}

/// What it says in the end.
struct Left {
    /// More than in the beginning.
    descriptors: i64,
    stored: Vec<StoredOf>,
}

/// Numbers of one client.
#[derive(Debug)]
struct StoredOf {
    client: u32,
    count: u64,
    /// After the greatest.
    next: u64,
}

impl Service {
    fn start() -> io::Result<Self> {
        let mut child = Command::new(env::current_exe()?)
            .arg("--serve-survival")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().expect("it is a pipe");
        let mut told = BufReader::new(stdout);
        let mut line = String::new();
        told.read_line(&mut line)?;
        let port = line.trim_end().parse().map_err(io::Error::other)?;
        Ok(Service {
            child,
            told,
            address: (Ipv4Addr::LOCALHOST, port).into(),
        })
    }

    /// Ends it. Blocks.
    fn end(mut self) -> io::Result<Left> {
        drop(self.child.stdin.take());
        let mut told = String::new();
        self.told.read_to_string(&mut told)?;
        let status = self.child.wait()?;
        let left = Left::parse(&told).filter(|_| status.success());
        left.ok_or_else(|| io::Error::other(format!("{status}, after {told:?}")))
    }
}

impl Left {
    fn parse(told: &str) -> Option<Left> {
        let mut lines = told.lines();
        let descriptors = lines.next()?.parse().ok()?;
        let stored = lines.map(|line| {
            let mut numbers = line.split(' ').map(str::parse::<u64>);
            let mut number = || numbers.next()?.ok();
            Some(StoredOf {
                client: number()? as u32,
                count: number()?,
                next: number()?,
            })
        });
        Some(Left {
            descriptors,
            stored: stored.collect::<Option<_>>()?,
        })
    }
}

const CLIENTS: usize = 6;

/// Apart from all others that draw from the seed.
const STREAM: u64 = 1 << 50;
