//! Servers of the crates under the load of one program that is the same for all.
//!
//! ```text
//!   CPU 0   peer-<crate> serve-..   ◀── loopback ──▶   load   CPU 1 (or 0)
//! ```
//!
//! `peers/load` says how it asks and what it measures, and `peers/workloads/src/cases/serve.rs`
//! what answers.
//!
//! On one CPU the load is a batch process, which does not interrupt others when it is woken: the
//! server finishes its turn, and falls asleep, before the load sees the answer. Otherwise the load
//! may ask again while the server is still at it; whether it does is the mood of the scheduler, and
//! halves the figures of some.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::method::Method;
use super::peers::{Binary, Builds};
use crate::process;
use crate::server::Server;
use crate::thread::allowed_cpus;

/// One case: its server, its clients, and their CPUs.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The name of the case. Its rows begin with it.
    pub case: &'static str,
    /// The case of the peers that serves.
    pub server: &'static str,
    /// What `load` is to do.
    pub arguments: &'static [&'static str],
    /// Where.
    pub cpus: Cpus,
}

/// Where server and load run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cpus {
    /// Both on one CPU, in turns. No CPU goes to sleep and none is interrupted from afar: what
    /// remains is the path through runtime and kernel.
    One,
    /// Each on a CPU of its own, as it would be in earnest. In a virtual machine waking an idle CPU
    /// costs tens of microseconds, and that may be most of the figure.
    Two,
}

/// Starts a program as a batch process.
const CHRT: &str = "chrt";

/// The load program, and the CPUs for it and the servers.
#[derive(Debug)]
pub struct Generator {
    loads: &'static [Load],
    path: PathBuf,
    server_cpu: usize,
    /// `None` if there is but one CPU.
    load_cpu: Option<usize>,
}

impl Generator {
    /// Builds the load program.
    ///
    /// # Errors
    /// If it does not build: then nothing can be measured.
    pub fn build(loads: &'static [Load], builds: &Builds) -> Result<Self, String> {
        let path = builds.package("load", "", "load")?;
        process::run(Command::new(CHRT).arg("--version"), None)
            .map_err(|complaint| format!("`{CHRT}` of util-linux is needed: {complaint}"))?;
        let cpus = allowed_cpus().map_err(|error| error.to_string())?;
        Ok(Self {
            loads,
            path,
            server_cpu: *cpus.first().ok_or("no CPU may be used")?,
            load_cpu: cpus.get(1).copied(),
        })
    }

    fn load(&self, case: &str) -> Option<&'static Load> {
        self.loads.iter().find(|load| load.case == case)
    }
}

impl Method for Generator {
    fn can(&self, binary: &Binary, case: &str) -> bool {
        self.load(case).is_some_and(|load| binary.has(load.server))
    }

    fn measure(&self, binary: &Binary, case: &str) -> Result<String, String> {
        let load = self
            .load(case)
            .ok_or_else(|| format!("no load is known for {case}"))?;
        let mut server = Command::new(&binary.path);
        server.arg(load.server).stderr(Stdio::piped());
        let mut server = Server::start(&mut server, self.server_cpu)?;
        let (mut command, load_cpu) = match (load.cpus, self.load_cpu) {
            (Cpus::Two, Some(cpu)) => (Command::new(&self.path), cpu),
            (Cpus::One, _) | (_, None) => {
                let mut command = Command::new(CHRT);
                command.args(["--batch", "0"]).arg(&self.path);
                (command, self.server_cpu)
            }
        };
        command
            .arg(load.case)
            .arg(&server.address)
            .arg(server.id().to_string())
            .args(load.arguments);
        process::run(&mut command, Some(load_cpu)).map_err(|complaint| {
            let of_server = server.complaint();
            [Some(complaint), of_server]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join("; ")
        })
    }

    fn remark(&self) -> Option<String> {
        let server_cpu = self.server_cpu;
        Some(match self.load_cpu {
            Some(load_cpu) => format!(
                "servers on CPU {server_cpu}; the load on CPU {load_cpu}, or on the server's where a row says one CPU"
            ),
            None => format!(
                "there is one CPU only ({server_cpu}): the load shares it with the server in all rows"
            ),
        })
    }
}
