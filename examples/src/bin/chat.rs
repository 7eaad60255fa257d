//! A chat server for `nc` or telnet: each line of a guest is sent to all others, on whichever executor
//! they are.
//!
//! ```console
//! $ cargo run --release -p examples --bin chat -- --port 7000
//! listening on 127.0.0.1:7000
//! $ echo 'hello, is anybody there?' | nc -N 127.0.0.1 7000
//! * you are guest 1
//! ```
//!
//! With two guests it looks like this:
//!
//! ```text
//!   * you are guest 1                       * you are guest 2
//!   * guest 2 has come                      1: hello, is anybody there?
//!   2: yes                                  * guest 1 has left
//! ```
//!
//! Lines go through a broadcast channel, which keeps the latest and never waits for a receiver, so
//! that slow guests do not block others: one that has missed a line is disconnected. So is a guest
//! that sends nothing, or takes nothing, for too long.

#![forbid(unsafe_code)]

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Parser;
use examples::serving::Serving;
use futures_lite::future::or;
use futures_lite::io::{BufReader, split};
use futures_lite::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use glommio::channels::broadcast::{self, SharedReceiver, SharedSender};
use glommio::net::TcpStream;

/// Passes lines from each guest to all others.
#[derive(Clone, Copy, Debug, Parser)]
struct Options {
    #[command(flatten)]
    serving: Serving,

    /// How long a guest may say nothing.
    #[arg(long, default_value = "10m")]
    idle_timeout: humantime::Duration,

    /// How long a guest may take nothing of what it is sent.
    #[arg(long, default_value = "10s")]
    write_timeout: humantime::Duration,
}

/// From which guest, and what. It is stored once, for any number of receivers.
type Line = (u64, Arc<str>);

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    // The receiver keeps the channel open while there are no guests.
    let (room, _open) = broadcast::shared::<Line>(LINES_MAX);
    let guests = Arc::new(AtomicU64::new(0));
    options.serving.run("", move |shard| {
        shard.serve_each(move |stream| {
            let guest = guests.fetch_add(1, Ordering::Relaxed) + 1;
            welcome(stream, guest, room.clone(), options)
        })
    })?;
    Ok(())
}

async fn welcome(stream: TcpStream, guest: u64, room: SharedSender<Line>, options: Options) {
    // From here on: what comes before is not for this guest.
    let heard = room.subscribe();
    let say = |text: String| drop(room.send((guest, text.into())));
    say(format!("* guest {guest} has come\n"));
    match converse(stream, guest, &say, heard, options).await {
        Ok(()) => say(format!("* guest {guest} has left\n")),
        Err(error) => say(format!("* guest {guest} is gone: {error}\n")),
    }
}

/// Reads and writes until the guest leaves or is disconnected.
async fn converse(
    stream: TcpStream,
    guest: u64,
    say: &impl Fn(String),
    mut heard: SharedReceiver<Line>,
    options: Options,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(*options.idle_timeout))?;
    stream.set_write_timeout(Some(*options.write_timeout))?;
    let (reader, mut writer) = split(stream);
    let talk = async {
        let mut reader = BufReader::new(reader);
        loop {
            let mut line = String::new();
            (&mut reader)
                .take(LINE_BYTES_MAX)
                .read_line(&mut line)
                .await?;
            match line.as_bytes() {
                [.., b'\n'] => say(format!("{guest}: {line}")),
                line if line.len() as u64 == LINE_BYTES_MAX => {
                    return Err(io::Error::other("too long a line"));
                }
                _ => return Ok(()),
            }
        }
    };
    let welcome = format!("* you are guest {guest}\n");
    writer.write_all(welcome.as_bytes()).await?;
    let listen = async {
        loop {
            match heard.recv().await {
                Ok((from, line)) if from != guest => writer.write_all(line.as_bytes()).await?,
                Ok(_) => {}
                Err(_) => return Err(io::Error::other("too slow")),
            }
        }
    };
    or(listen, talk).await
}

const LINE_BYTES_MAX: u64 = 4096;

/// Lines that a guest may be behind.
const LINES_MAX: usize = 256;
