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
mod pools;
mod protocol;
pub(crate) mod service;
mod shard;
#[cfg(feature = "simulation")]
mod simulated;

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::net::Ipv4Addr;
use std::process::{Child, ChildStdout, Command, Stdio};

use self::client::{CLIENTS, Left, judge, run_all};
use self::protocol::Deaths;
use crate::workload::prelude::*;

/// Starts the service, and the executor of its clients.
pub(crate) fn start(plan: &mut Starter<'_>) -> Started {
    #[cfg(feature = "simulation")]
    if let Some(nodes) = plan.nodes.clone() {
        return simulated::start(plan, nodes);
    }
    let seed = plan.seed;
    let service = Service::start()?;
    let clients = plan.scaled(CLIENTS, 1);
    let work = move |checker: Rc<Checker>| async move {
        checker.spawn_sweeper();
        let (address, deaths) = (service.address.to_string(), Deaths::default());
        let told = run_all(&checker, seed, clients, &address, &deaths).await;
        let left = executor().spawn_blocking(move || service.end()).await;
        judge(&checker, &told, left);
    };
    plan.start("survival", work)
}

/// The process that serves.
struct Service {
    child: Child,
    told: BufReader<ChildStdout>,
    address: SocketAddr,
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
        let left = serde_json::from_str(&told).ok();
        let left = left.filter(|_| status.success());
        left.ok_or_else(|| io::Error::other(format!("{status}, after {told:?}")))
    }
}
