//! A load generator for the example `broker`: keeps a number of messages in flight, and measures.
//!
//! ```console
//! $ cargo run --release -p load --bin broker_load -- 127.0.0.1:7100 --in-flight 100000
//! ```
//!
//! One connection publishes and another consumes. The consumer holds back its acks until it has so
//! many messages; from then on each message that comes has the oldest one acknowledged. So the
//! broker has that many timers armed all the while, and each message arms one and disarms one.
//! When all have been counted, the rest is acknowledged as well, and each message must have come
//! once.
//!
//! With `--redis` the broker is a Redis server, for comparison: a stream, of which a group has one
//! consumer (`XADD`, `XREADGROUP`, and `XACK` for each message). With `--nats` it is a NATS server
//! with JetStream: a stream in memory, and a consumer to which it pushes messages, with an answer
//! to each ack.
//!
//! # What is measured
//!
//! | row | from | to |
//! |---|---|---|
//! | `confirm` | publish | the broker has confirmed it |
//! | `deliver` | publish | the consumer has it |
//! | `ack` | the ack is sent | the broker has answered it |
//!
//! Without `--rate` messages go out as fast as the broker takes them, with a bounded number on
//! their way (`--window`), and the latencies are those of a saturated broker. With `--rate` each
//! message has a time at which it is due, whatever the broker does, and *all three* rows begin at
//! that time: a pause of the broker counts for all messages that were due meanwhile, also if they
//! were sent after it (this is what is known as correcting for coordinated omission). The row `ack`
//! then begins when the message was due whose coming had the ack sent.

#![forbid(unsafe_code)]

mod load;
mod nats;
mod process;
mod redis;
mod wire;

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use clap::Parser;
use examples::broker::link::Duplex;
use futures_lite::future::or;
use glommio::net::TcpStream;
use glommio::timer::timeout;
use glommio::{GlommioError, LocalExecutorBuilder, Placement};
use load::Load;
use wire::Wire;

/// Measures a broker with many messages in flight.
#[derive(Clone, Debug, Parser)]
#[command(name = "broker_load")]
struct Options {
    /// Where the broker listens.
    broker: SocketAddr,

    /// Messages that are delivered and not acknowledged, all the while.
    #[arg(long, default_value_t = 1000)]
    in_flight: usize,

    /// Messages that are measured, when so many are in flight.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    messages: u64,

    /// Messages per second; without it, as fast as the broker takes them.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    rate: Option<u64>,

    /// Messages on their way, without `--rate`.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    window: u64,

    /// Bytes of a message.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(16..=65536))]
    bytes: u32,

    /// Topic. It should be empty: what others have left there is counted as foreign.
    #[arg(long, default_value = "load")]
    topic: String,

    /// The broker is a Redis server, whose streams are measured.
    #[arg(long)]
    redis: bool,

    /// The broker is a NATS server, whose JetStream is measured.
    #[arg(long, conflicts_with = "redis")]
    nats: bool,

    /// Process of the broker, whose processor time and memory are reported.
    #[arg(long)]
    process: Option<u32>,

    /// CPU to run on.
    #[arg(long)]
    cpu: Option<usize>,

    /// Fails if the broker says nothing for so long.
    #[arg(long, default_value = "60s")]
    patience: humantime::Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    if options.topic.is_empty() || options.topic.len() > 200 {
        return Err("--topic needs a name of 1 to 200 bytes".into());
    }
    let placement = options.cpu.map_or(Placement::Unbound, Placement::Fixed);
    let executor = LocalExecutorBuilder::new(placement)
        .name("broker_load")
        .spawn(move || run(options))?;
    let (report, is_complete) = executor.join()??;
    print!("{report}");
    if is_complete {
        Ok(())
    } else {
        Err("not every message came once and was acknowledged in time".into())
    }
}

async fn run(options: Options) -> io::Result<(String, bool)> {
    if let Some(process) = options.process {
        process::cpu_ns(process)
            .map_err(|error| io::Error::other(format!("--process {process}: {error}")))?;
    }
    let load = Rc::new(Load::new(&options));
    let talking = wire::start(&load, || connect(options.broker), options.outstanding()).await?;
    let watched = async {
        let mut before = load.replies();
        loop {
            match timeout(*options.patience, async {
                load.done().await;
                Ok(())
            })
            .await
            {
                Ok(()) => return Ok(()),
                Err(GlommioError::TimedOut(_)) if load.replies() != before => {
                    before = load.replies();
                }
                Err(_) => return Err(io::Error::other(load.state())),
            }
        }
    };
    let publishing = async {
        load.publish(&options).await;
        // The rest is up to the other tasks.
        std::future::pending().await
    };
    or(watched, or(talking, publishing)).await?;
    Ok((load.report(&options), load.is_complete()))
}

async fn connect(broker: SocketAddr) -> io::Result<Duplex> {
    let stream = TcpStream::connect(broker).await?;
    stream.set_nodelay(true)?;
    Ok(Duplex::new(stream))
}

impl Options {
    fn wire(&self) -> Wire {
        let (topic, outstanding) = (&self.topic, self.outstanding());
        match (self.redis, self.nats) {
            (true, _) => Wire::Redis(redis::Stream::new(topic, outstanding)),
            (_, true) => Wire::Nats(nats::JetStream::new(topic, outstanding)),
            _ => Wire::Broker {
                topic: topic.clone(),
            },
        }
    }

    /// The consumer holds those in flight, and some are on their way to it.
    fn outstanding(&self) -> u64 {
        self.in_flight as u64 + self.window.max(CREDIT_AHEAD)
    }
}

/// Deliveries on their way while there is a rate.
const CREDIT_AHEAD: u64 = 100_000;
