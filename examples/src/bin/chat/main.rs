//! A chat server for `nc` or telnet: each line of a client is sent to all others.
//!
//! ```console
//! $ cargo run --release -p examples --bin chat -- --port 7000
//! $ nc 127.0.0.1 7000                             # in two other terminals
//! ```
//!
//! All guests live on one executor, so what they share needs no lock: an `Rc` is enough. Slow
//! clients never block others: each guest has an outbox of bounded length, and is disconnected when
//! it is full. So is a guest that sends nothing for the idle timeout, or a line that does not end.

#![forbid(unsafe_code)]

mod outbox;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use clap::Parser;
use futures_lite::future::or;
use futures_lite::{AsyncRead, AsyncWrite};
use glommio::net::{TcpListener, TcpStream};
use glommio::timer::sleep;
use glommio::{LocalExecutorBuilder, Placement, TaskPanic, spawn_local};
use outbox::Outbox;

/// Passes lines from each guest to all others.
#[derive(Clone, Debug, Parser)]
#[command(name = "chat")]
struct Options {
    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 7000)]
    port: u16,

    /// How long a guest may say nothing.
    #[arg(long, default_value = "10m")]
    idle_timeout: humantime::Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let executor = LocalExecutorBuilder::new(Placement::Unbound)
        .name("chat")
        .on_task_panic(TaskPanic::Isolate)
        .spawn(move || serve(options))?;
    Ok(executor.join()??)
}

async fn serve(options: Options) -> glommio::Result<(), ()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
    println!("listening on {}", listener.local_addr()?);
    let room = Rc::new(Room::default());
    accept_each(&listener, move |stream| {
        let (room, options) = (Rc::clone(&room), options.clone());
        async move {
            let (guest, outbox) = room.enter();
            let ended = converse(stream, &options, &room, guest, &outbox).await;
            room.leave(guest, &ended);
        }
    })
    .await
}

/// Reads and writes until the guest leaves or is disconnected.
async fn converse(
    stream: TcpStream,
    options: &Options,
    room: &Room,
    guest: u64,
    outbox: &Outbox,
) -> io::Result<()> {
    stream.set_read_timeout(Some(*options.idle_timeout))?;
    let stream = Duplex::new(stream);
    let talk = or(hear(&stream, room, guest), tell(&stream, outbox));
    // Also while a write waits for the guest to read.
    let lag = async {
        outbox.overflow().await;
        Err(io::Error::other("too slow"))
    };
    or(talk, lag).await
}

/// Sends the guest's lines to the others.
async fn hear(stream: &Duplex, room: &Room, guest: u64) -> io::Result<()> {
    let mut said = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        said.extend_from_slice(&buffer[..count]);
        while let Some(end) = said.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = said.drain(..=end).collect();
            room.tell_others(guest, &[format!("{guest}: ").as_bytes(), &line].concat());
        }
        if said.len() > LINE_BYTES_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "too long a line",
            ));
        }
    }
}

/// Sends the lines of others to the guest.
async fn tell(stream: &Duplex, outbox: &Outbox) -> io::Result<()> {
    loop {
        stream.write_all(&outbox.next().await).await?;
    }
}

/// Accepts connections for ever and has each served by a task of its own.
///
/// An error of `accept` is no reason to end: the listener remains usable.
async fn accept_each<F>(listener: &TcpListener, serve: impl Fn(TcpStream) -> F) -> !
where
    F: Future<Output = ()> + 'static,
{
    loop {
        match listener.accept().await {
            // A task whose handle is dropped is cancelled; this one runs on by itself.
            Ok(stream) => drop(spawn_local(serve(stream)).detach()),
            Err(error) => {
                // Out of descriptors, most likely. They come back as connections end.
                eprintln!("cannot accept: {error}");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// A stream that one future reads and another writes, both of the same task.
///
/// The traits borrow the stream mutably; here nothing is borrowed during a wait.
#[derive(Debug)]
struct Duplex(RefCell<TcpStream>);

impl Duplex {
    /// Both directions of `stream`.
    fn new(stream: TcpStream) -> Duplex {
        Duplex(RefCell::new(stream))
    }

    /// As `AsyncReadExt::read`.
    async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| Pin::new(&mut *self.0.borrow_mut()).poll_read(cx, buffer)).await
    }

    /// As `AsyncWriteExt::write`.
    async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        poll_fn(|cx| Pin::new(&mut *self.0.borrow_mut()).poll_write(cx, bytes)).await
    }

    /// As `AsyncWriteExt::write_all`.
    async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = self.write(bytes).await?;
            bytes = &bytes[count..];
        }
        Ok(())
    }
}

/// All connected guests.
#[derive(Default)]
struct Room {
    guests: RefCell<BTreeMap<u64, Rc<Outbox>>>,
    last: Cell<u64>,
}

impl Room {
    fn enter(&self) -> (u64, Rc<Outbox>) {
        let guest = self.last.get() + 1;
        self.last.set(guest);
        let outbox = Rc::new(Outbox::default());
        self.guests.borrow_mut().insert(guest, Rc::clone(&outbox));
        outbox.push(format!("* you are guest {guest}\n").into_bytes().into());
        self.tell_others(guest, format!("* guest {guest} has come\n").as_bytes());
        (guest, outbox)
    }

    fn leave(&self, guest: u64, ended: &io::Result<()>) {
        self.guests.borrow_mut().remove(&guest);
        let why = match ended {
            Ok(()) => "has left".to_owned(),
            Err(error) => format!("is gone: {error}"),
        };
        self.tell_others(guest, format!("* guest {guest} {why}\n").as_bytes());
    }

    /// Never waits. A line is stored once, for any number of readers.
    fn tell_others(&self, guest: u64, line: &[u8]) {
        let line: Rc<[u8]> = line.into();
        for (&other, outbox) in &*self.guests.borrow() {
            if other != guest {
                outbox.push(Rc::clone(&line));
            }
        }
    }
}

const LINE_BYTES_MAX: usize = 4096;
