//! A message broker that survives power cuts, and the simulation that proves it: clients, network, disk
//! and all, in one thread, from one seed.
//!
//! ```console
//! $ cargo run --release -p examples --features simulation --bin simulated_broker -- --seeds 5
//! 5 seeds: 4500 messages confirmed, .. power cuts, none lost
//! $ cargo run --release -p examples --features simulation --bin simulated_broker -- --without-sync | tail -n 4
//! after .. s, auditor panicked: assertion `left == right` failed: messages that were confirmed are lost
//!   left: ..
//!  right: 0
//! to repeat this: .seed(..)
//! ```
//!
//! # The service
//!
//! ```text
//!   producer ──PUT id──▶ │          │ ──append, fdatasync──▶ log on disk
//!            ◀──id────── │  broker  │
//!   auditor  ──GET─────▶ │          │ ◀──read at the start── log on disk
//!            ◀──ids───── │          │
//! ```
//!
//! The answer to PUT says that the message is on the device. The broker writes all that
//! has come while the group before was written, and answers when the sync is over. After a restart it reads its log up
//! to the first record that is not whole. Clients connect again whenever their connection is gone, and
//! send what was not confirmed once more, so that a message may be there twice.
//!
//! # What is checked
//!
//! A message that was confirmed is in the log when all is over, whatever happened in between. With
//! `--without-sync` the broker leaves the sync out, which a few seeds find.

#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::error::Error;
use std::io;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use clap::Parser;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::channels::local_channel::{self, LocalReceiver, LocalSender};
use glommio::channels::oneshot;
use glommio::io::{BufferedFile, Directory, OpenOptions};
use glommio::net::{TcpListener, TcpStream};
use glommio::simulation::{self, Failure, Report, Simulation, SimulationBuilder};
use glommio::spawn_local;
use glommio::timer::sleep;

/// Runs a broker and its clients in a simulation, with power cuts.
#[derive(Clone, Debug, Parser)]
struct Options {
    /// How many seeds, from `--seed` on.
    #[arg(long, default_value_t = 20)]
    seeds: u64,

    /// The first one. Default: that in the environment variable GLOMMIO_SEED, or 0.
    #[arg(long, env = "GLOMMIO_SEED", default_value_t = 0)]
    seed: u64,

    /// How many messages each producer sends.
    #[arg(long, default_value_t = 300)]
    messages: u64,

    /// The broker confirms messages that are not on its device yet.
    #[arg(long)]
    without_sync: bool,

    /// Find out which of the faults suffice for a failure.
    #[arg(long)]
    minimise: bool,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let options = Options::parse();
    let (mut confirmed, mut starts) = (0, 0);
    for seed in options.seed..options.seed + options.seeds {
        let ledger = Rc::new(Ledger::default());
        if let Err(failure) = simulate(Simulation::builder().seed(seed), &options, &ledger) {
            println!("{failure}");
            if options.minimise {
                // Fails with the fewest faults that it takes.
                let minimised = Simulation::minimise(|simulation| {
                    simulate(simulation.seed(seed), &options, &Rc::default())
                });
                println!("\n{}", minimised.err().ok_or("it did not fail again")?);
            }
            return Ok(ExitCode::FAILURE);
        }
        confirmed += ledger.confirmed.borrow().len();
        starts += ledger.starts.get() - 1;
    }
    let seeds = options.seeds;
    println!("{seeds} seeds: {confirmed} messages confirmed, {starts} power cuts, none lost");
    Ok(ExitCode::SUCCESS)
}

fn simulate(
    simulation: SimulationBuilder,
    options: &Options,
    ledger: &Rc<Ledger>,
) -> Result<Report, Failure> {
    let syncs = !options.without_sync;
    let (of_broker, of_auditor) = (Rc::clone(ledger), Rc::clone(ledger));
    let mut simulation = simulation
        .network(|it| it.latency(MILLISECOND / 10..5 * MILLISECOND).loss(0.01))
        .disk(|it| it.lost_unsynced(true).torn_writes(true))
        .node("broker", 1, move || {
            of_broker.starts.set(of_broker.starts.get() + 1);
            broker(syncs)
        })
        .restarts("broker", SECOND / 10..2 * SECOND, MILLISECOND..SECOND / 2);
    for producer in 0..PRODUCERS {
        let (ledger, messages) = (Rc::clone(ledger), options.messages);
        simulation = simulation.client(format!("producer {producer}"), move || {
            produce(producer, messages, Rc::clone(&ledger))
        });
    }
    let expected = PRODUCERS * options.messages;
    simulation = simulation.client("auditor", move || {
        audit(expected as usize, Rc::clone(&of_auditor))
    });
    simulation.run()
}

/// The broker. Nothing in it knows of a simulation.
struct Broker {
    file: BufferedFile,
    syncs: bool,
    /// All that is on the device, in the order of arrival.
    messages: RefCell<Vec<u64>>,
    /// What comes, for the next group.
    arrivals: LocalSender<Arrival>,
}

/// A message, and whom to tell that it is on the device.
type Arrival = (u64, oneshot::Sender<()>);

async fn broker(syncs: bool) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.create(true).read(true).write(true);
    let file = options.buffered_open("/messages").await?;
    // The name of the file, too, is to survive.
    let directory = Directory::open("/").await?;
    directory.sync().await?;
    directory.close().await?;
    let bytes = file.read_at(0, file.file_size().await? as usize).await?;
    let records = bytes.chunks_exact(RECORD_BYTES);
    let messages: Vec<_> = records.map_while(message_of).collect();
    // What follows was never confirmed, and must not look whole when it is written over in part.
    let length = messages.len() * RECORD_BYTES;
    file.truncate(length as u64).await?;
    file.fdatasync().await?;
    let (arrivals, arrived) = local_channel::new_unbounded();
    let broker = Rc::new(Broker {
        file,
        syncs,
        messages: RefCell::new(messages),
        arrivals,
    });
    spawn_local(write_groups(Rc::clone(&broker), arrived)).detach();
    let listener = TcpListener::bind("0.0.0.0:7000")?;
    loop {
        match listener.accept().await {
            Ok(connection) => drop(spawn_local(serve(connection, Rc::clone(&broker))).detach()),
            // Out of descriptors, most likely.
            Err(_) => sleep(50 * MILLISECOND).await,
        }
    }
}

async fn serve(mut client: TcpStream, broker: Rc<Broker>) -> io::Result<()> {
    client.set_nodelay(true)?;
    loop {
        let mut command = [0];
        client.read_exact(&mut command).await?;
        let message = receive(&mut client).await?;
        let mut answer = Vec::new();
        match command {
            [PUT] => {
                let (sender, confirmed) = oneshot::oneshot();
                let gone = io::ErrorKind::ConnectionAborted;
                let sent = broker.arrivals.try_send((message, sender));
                sent.map_err(|_| gone)?;
                confirmed.await.map_err(|_| gone)?;
                answer.push(message);
            }
            [GET] => {
                let messages = broker.messages.borrow();
                answer.push(messages.len() as u64);
                answer.extend_from_slice(&messages);
            }
            _ => return Err(io::Error::other("there is no such command")),
        }
        let bytes: Vec<_> = answer.iter().flat_map(|it| it.to_le_bytes()).collect();
        client.write_all(&bytes).await?;
    }
}

/// Writes a group, tells its clients, and goes on with what has come meanwhile.
async fn write_groups(broker: Rc<Broker>, arrived: LocalReceiver<Arrival>) {
    let mut group = Vec::new();
    while arrived.recv_many(&mut group, LARGEST_GROUP).await > 0 {
        let position = (broker.messages.borrow().len() * RECORD_BYTES) as u64;
        let records = group.iter().flat_map(|(message, _)| record_of(*message));
        let written = broker.file.write_all_at(records.collect(), position).await;
        written.expect("the log can be written");
        if broker.syncs {
            let synced = broker.file.fdatasync().await;
            synced.expect("the log can be synced");
        }
        for (message, client) in group.drain(..) {
            broker.messages.borrow_mut().push(message);
            // A client that has left is not told.
            let _ = client.send(());
        }
    }
}

/// A message with its checksum: eight bytes each.
fn record_of(message: u64) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    record[..8].copy_from_slice(&message.to_le_bytes());
    let checksum = u64::from(crc32fast::hash(&record[..8])) | 1 << 40;
    record[8..].copy_from_slice(&checksum.to_le_bytes());
    record
}

/// The message of a record, if it is whole.
fn message_of(record: &[u8]) -> Option<u64> {
    let message = u64::from_le_bytes(*record.first_chunk()?);
    (record == record_of(message)).then_some(message)
}

/// What the clients know of messages.
#[derive(Default)]
struct Ledger {
    confirmed: RefCell<BTreeSet<u64>>,
    starts: Cell<u64>,
}

/// Sends messages until each is confirmed.
async fn produce(producer: u64, messages: u64, ledger: Rc<Ledger>) {
    let mut connection = None;
    for number in 0..messages {
        let message = producer << 32 | number;
        loop {
            match put(&mut connection, message).await {
                Ok(confirmed) if confirmed == message => break,
                // Confirms no message of ours: a broker that mixes up clients.
                Ok(other) => panic!("{message} was sent, and {other} confirmed"),
                Err(_) => sleep(10 * MILLISECOND).await,
            }
        }
        ledger.confirmed.borrow_mut().insert(message);
        sleep(MILLISECOND).await;
    }
}

/// A connection that has failed is gone.
async fn put(connection: &mut Option<TcpStream>, message: u64) -> io::Result<u64> {
    let mut stream = match connection.take() {
        Some(stream) => stream,
        None => connect().await?,
    };
    send(&mut stream, PUT, message).await?;
    let answer = receive(&mut stream).await?;
    *connection = Some(stream);
    Ok(answer)
}

/// Waits until all messages are confirmed, reads what the broker has, and compares.
async fn audit(expected: usize, ledger: Rc<Ledger>) {
    while ledger.confirmed.borrow().len() < expected {
        sleep(SECOND).await;
    }
    let found = loop {
        match all_messages().await {
            Ok(messages) => break messages,
            Err(_) => sleep(10 * MILLISECOND).await,
        }
    };
    let lost = ledger.confirmed.borrow().difference(&found).count();
    simulation::note(format!("{} messages are there", found.len()));
    assert_eq!(lost, 0, "messages that were confirmed are lost");
}

async fn all_messages() -> io::Result<BTreeSet<u64>> {
    let mut stream = connect().await?;
    send(&mut stream, GET, 0).await?;
    let mut messages = BTreeSet::new();
    for _ in 0..receive(&mut stream).await? {
        messages.insert(receive(&mut stream).await?);
    }
    Ok(messages)
}

async fn connect() -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout("broker:7000", SECOND).await?;
    stream.set_nodelay(true)?;
    // A broker whose power is off says nothing.
    stream.set_read_timeout(Some(SECOND))?;
    Ok(stream)
}

async fn send(stream: &mut TcpStream, command: u8, number: u64) -> io::Result<()> {
    let mut bytes = [command; 9];
    bytes[1..].copy_from_slice(&number.to_le_bytes());
    stream.write_all(&bytes).await
}

async fn receive(stream: &mut TcpStream) -> io::Result<u64> {
    let mut number = [0; 8];
    stream.read_exact(&mut number).await?;
    Ok(u64::from_le_bytes(number))
}

/// The commands of clients, each followed by a number of eight bytes: a message to keep, or anything for
/// all that are kept. The answer is the message, or the count of messages and these.
const PUT: u8 = b'P';
const GET: u8 = b'G';
const RECORD_BYTES: usize = 16;
const LARGEST_GROUP: usize = 1024;
const PRODUCERS: u64 = 3;
const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
