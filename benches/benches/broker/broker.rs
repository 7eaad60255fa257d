//! The brokers: how they are built and started.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use benches::server::{Executable, Server};

/// A broker, in one configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broker {
    /// The example, with its timers in the timing wheel.
    Wheel,
    /// The example, with its timers in the ordered map.
    Classic,
    /// Redis' streams.
    Redis,
    /// NATS' JetStream.
    Nats,
}

impl Broker {
    /// All that can run here.
    pub fn all() -> Vec<Broker> {
        let mut all = vec![Broker::Wheel, Broker::Classic];
        let others = [Broker::Redis, Broker::Nats];
        all.extend(others.iter().filter(|other| other.version().is_some()));
        all
    }

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Broker::Wheel => "`broker`, timing wheel",
            Broker::Classic => "`broker`, ordered map",
            Broker::Redis => "Redis streams",
            Broker::Nats => "NATS JetStream",
        }
    }

    /// That of a program that is not ours; none if it is not installed.
    fn version(self) -> Option<String> {
        let (program, mark) = match self {
            Broker::Wheel | Broker::Classic => return None,
            Broker::Redis => ("redis-server", "v="),
            Broker::Nats => ("nats-server", "v"),
        };
        let output = Command::new(program).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut words = text.split_whitespace();
        let version = words.find_map(|word| word.strip_prefix(mark))?;
        Some(version.to_owned())
    }
}

/// The versions of what is not ours.
pub fn versions() -> String {
    let version = |broker: Broker, name| match broker.version() {
        Some(version) => format!("{name} {version}"),
        None => format!("without {name}"),
    };
    let redis = version(Broker::Redis, "Redis");
    format!("{redis}, {}", version(Broker::Nats, "NATS"))
}

/// The executables of the examples.
#[derive(Debug)]
pub struct Programs {
    wheel: PathBuf,
    classic: PathBuf,
    /// The load generator.
    pub load: PathBuf,
}

impl Programs {
    /// Builds them.
    ///
    /// # Errors
    /// If one does not build.
    pub fn build(directory: &Path) -> Result<Programs, String> {
        let build = |binary, features, name| {
            let executable = Executable {
                manifest: "../Cargo.toml",
                package: "examples",
                binary,
                features,
            };
            executable.build(directory, name, false)
        };
        Ok(Programs {
            classic: build("broker", "", "broker-classic")?,
            wheel: build("broker", "timing-wheel", "broker-wheel")?,
            load: build("broker_load", "timing-wheel", "broker-load")?,
        })
    }

    /// Starts a broker and waits until it listens.
    ///
    /// # Errors
    /// If it does not start, or listens nowhere.
    pub fn start(&self, broker: Broker) -> Result<Server, String> {
        let started = match broker {
            Broker::Wheel => example(&self.wheel),
            Broker::Classic => example(&self.classic),
            Broker::Redis => other("redis-server", |command, port| {
                command.args(["--bind", "127.0.0.1", "--port", port]).args([
                    "--save",
                    "",
                    "--appendonly",
                    "no",
                ]);
            }),
            // Streams in memory write nothing there.
            Broker::Nats => other("nats-server", |command, port| {
                command
                    .args(["--addr", "127.0.0.1", "--port", port, "--jetstream"])
                    .arg("--store_dir")
                    .arg(self.load.with_file_name("nats"));
            }),
        };
        started.map_err(|error| format!("{}: {error}", broker.name()))
    }
}

fn example(program: &Path) -> Result<Server, String> {
    let mut command = Command::new(program);
    command
        .args(["--port", "0", "--waiting-max", "10000000"])
        // No message is to be delivered again, however busy the machine.
        .args(["--ack-deadline", "10m"]);
    Server::start(&mut command, 0)
}

/// Starts a program that is given its port and does not say when it listens.
fn other(program: &str, configure: impl FnOnce(&mut Command, &str)) -> Result<Server, String> {
    // The port is free when the program takes it, unless another one is quicker.
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map_err(|error| format!("no port is free: {error}"))?;
    let mut command = Command::new(program);
    configure(&mut command, &address.port().to_string());
    Server::start_at(&mut command, 0, address)
}
