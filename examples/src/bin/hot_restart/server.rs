//! One generation of the server.

use std::cell::RefCell;
use std::error::Error;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process;
use std::rc::Rc;
use std::time::Duration;

use futures_lite::future::or;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use glommio::spawn_local;
use glommio::sync::{CancellationToken, Gate};
use glommio::timer::sleep;

use crate::handover::{self, Connection, Sockets};

/// The longest line that is read.
const LINE_BYTES: usize = 4096;

/// What the connections of a generation share.
struct Server {
    work: Duration,
    /// Given when the successor is ready.
    leaving: CancellationToken,
    /// The connections.
    gate: Gate,
    /// Those that are to go on in the successor.
    left: RefCell<Vec<Connection>>,
}

pub async fn run(control: &Path, port: u16, work: Duration) -> Result<(), Box<dyn Error>> {
    let server = Rc::new(Server {
        work,
        leaving: CancellationToken::new(),
        gate: Gate::new(),
        left: RefCell::default(),
    });
    let (sockets, running) = match handover::ask(control).await? {
        Some((sockets, running)) => (sockets, Some(running)),
        None => {
            let sockets = Sockets {
                listener: TcpListener::bind((Ipv4Addr::LOCALHOST, port))?,
                control: UnixListener::bind(control)?,
            };
            (sockets, None)
        }
    };
    println!("listening on {}", sockets.listener.local_addr()?);
    let taking_over = running.map(|running| spawn_local(take_over(server.clone(), running)));

    let serve = async {
        accept(&server, &sockets.listener).await;
        unreachable!("it accepts until it is dropped");
    };
    let mut successor = or(serve, successor(&sockets)).await;

    println!("handing over");
    // Those that were accepted and not served yet go along; later ones wait for the successor.
    let (_listener, accepted) = sockets.listener.into_parts().await;
    for connection in accepted {
        server.serve(connection.bind_to_executor(), Vec::new());
    }
    if let Some(taking_over) = taking_over {
        taking_over.await;
    }
    server.leaving.cancel();
    server.gate.close().await?;
    let left = server.left.take();
    let count = left.len();
    for connection in left {
        handover::send(&mut successor, connection).await?;
    }
    println!("handed {count} connections over");
    Ok(())
}

async fn accept(server: &Rc<Server>, listener: &TcpListener) {
    loop {
        match listener.accept().await {
            Ok(stream) => server.serve(stream, Vec::new()),
            Err(error) => {
                // Out of descriptors, most likely. They come back as connections end.
                eprintln!("cannot accept: {error}");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Waits for a successor that is ready. One that is not, for instance because it has ended, is left
/// alone.
async fn successor(sockets: &Sockets) -> UnixStream {
    loop {
        let offered = async {
            let mut successor = sockets.control.accept().await?;
            handover::offer(sockets, &mut successor).await?;
            Ok::<_, io::Error>(successor)
        };
        match offered.await {
            Ok(successor) => return successor,
            Err(error) => {
                eprintln!("no successor: {error}");
                sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

/// Serves the connections of the running server, which ends then.
async fn take_over(server: Rc<Server>, mut running: UnixStream) {
    let taken = async {
        handover::say_ready(&mut running).await?;
        while let Some(connection) = handover::receive(&mut running).await? {
            server.serve(connection.stream, connection.unserved);
        }
        Ok::<_, io::Error>(())
    };
    if let Err(error) = taken.await {
        eprintln!("the server before this one has ended early: {error}");
    }
}

impl Server {
    fn serve(self: &Rc<Self>, stream: TcpStream, unserved: Vec<u8>) {
        let server = self.clone();
        let connection = async move {
            if let Err(error) = server.serve_lines(stream, unserved).await {
                eprintln!("a connection has failed: {error}");
            }
        };
        let spawned = self.gate.spawn(connection);
        spawned.expect("the gate is closed later").detach();
    }

    /// Answers one line after the other, until the client leaves or the server is left, which is
    /// looked at between two lines.
    async fn serve_lines(&self, mut stream: TcpStream, mut unserved: Vec<u8>) -> io::Result<()> {
        stream.set_nodelay(true)?;
        // One that takes no answers must not keep this process from ending.
        stream.set_write_timeout(Some(Duration::from_secs(10)))?;
        loop {
            if self.leaving.is_cancelled() {
                self.left.borrow_mut().push(Connection { stream, unserved });
                return Ok(());
            }
            if let Some(end) = unserved.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = unserved.drain(..=end).collect();
                sleep(self.work).await;
                let mut answer = format!("{} ", process::id()).into_bytes();
                answer.extend(line);
                stream.write_all(&answer).await?;
                continue;
            }
            if unserved.len() > LINE_BYTES {
                return Err(io::Error::other("a line without an end"));
            }
            let mut buf = [0; 1024];
            // Dropping a read loses nothing: what has come stays in the socket.
            let read = or(async { Some(stream.read(&mut buf).await) }, async {
                self.leaving.cancelled().await;
                None
            });
            match read.await {
                None => {}
                Some(read) => match read? {
                    0 => return stream.close().await,
                    read => unserved.extend_from_slice(&buf[..read]),
                },
            }
        }
    }
}
