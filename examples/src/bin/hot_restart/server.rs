//! One generation of the server.

use std::cell::RefCell;
use std::error::Error;
use std::future::pending;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process;
use std::rc::Rc;
use std::time::Duration;

use futures_lite::future::or;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::future::timeout;
use glommio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use glommio::spawn_local;
use glommio::sync::{CancellationToken, Gate};
use glommio::task::JoinSet;
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

pub async fn run(
    control: &Path,
    port: u16,
    work: Duration,
    patience: Duration,
) -> Result<(), Box<dyn Error>> {
    let (mut sockets, running) = match handover::ask(control).await? {
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
    let mut server = Server::new(work);
    let mut taking_over = running.map(|running| spawn_local(take_over(server.clone(), running)));
    loop {
        let serve = async {
            accept(&server, &sockets.listener).await;
            unreachable!("it accepts until it is dropped");
        };
        let mut successor = or(serve, successor(&sockets, patience)).await;

        println!("handing over");
        // Those that were accepted and not served yet go along; later ones wait for the successor.
        let (listener, accepted) = sockets.listener.into_parts().await;
        let (control, asking) = sockets.control.into_parts().await;
        // They ask again.
        drop(asking);
        for connection in accepted {
            server.serve(connection.bind_to_executor(), Vec::new());
        }
        if let Some(taking_over) = taking_over.take() {
            taking_over.await;
        }
        server.leaving.cancel();
        server.gate.close().await?;
        let left = server.left.take();
        let sends = async {
            timeout(patience, handover::send_all(&mut successor, &left)).await??;
            Ok::<_, io::Error>(())
        };
        let Err(error) = sends.await else {
            println!("handed {} connections over", left.len());
            return Ok(());
        };
        // It knows by the end of the stream that nothing is its own.
        drop(successor);
        eprintln!("going on, as the successor does not: {error}");
        sockets = Sockets {
            listener: listener.into(),
            control: control.into(),
        };
        server = Server::new(work);
        for Connection { stream, unserved } in left {
            server.serve(stream, unserved);
        }
    }
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

/// Waits for a successor that is ready, and chooses it. Those that are not, for instance because they have
/// ended or hang, keep none from being chosen.
async fn successor(sockets: &Sockets, patience: Duration) -> UnixStream {
    let mut candidates = JoinSet::new();
    loop {
        let asks = async { Ok((sockets.control.accept().await?, false)) };
        let is_ready = async {
            match candidates.join_next().await {
                Some(offered) => Ok((offered.map_err(io::Error::other)??, true)),
                None => pending().await,
            }
        };
        let failed: io::Error = match or(asks, is_ready).await {
            Ok((mut candidate, true)) => match handover::choose(&mut candidate).await {
                Ok(()) => return candidate,
                Err(error) => error,
            },
            Ok((candidate, false)) => match sockets.duplicate() {
                Ok(sockets) => {
                    candidates.spawn(offer(sockets, candidate, patience));
                    continue;
                }
                Err(error) => error,
            },
            Err(error) => error,
        };
        eprintln!("no successor: {failed}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// The candidate, when it is ready.
async fn offer(
    sockets: [OwnedFd; 2],
    mut candidate: UnixStream,
    patience: Duration,
) -> io::Result<UnixStream> {
    timeout(patience, handover::offer(sockets, &mut candidate)).await??;
    Ok(candidate)
}

/// Serves the connections of the running server, which ends then.
async fn take_over(server: Rc<Server>, mut running: UnixStream) {
    match handover::receive_all(&mut running).await {
        Ok(connections) => {
            for connection in connections {
                server.serve(connection.stream, connection.unserved);
            }
        }
        Err(error) => eprintln!("the server before this one goes on, or has ended: {error}"),
    }
}

impl Server {
    fn new(work: Duration) -> Rc<Server> {
        Rc::new(Server {
            work,
            leaving: CancellationToken::new(),
            gate: Gate::new(),
            left: RefCell::default(),
        })
    }

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
