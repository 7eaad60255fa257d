//! A server that is replaced by a newer process under load: no connection is refused, none is reset.
//!
//! ```console
//! $ cargo run --release -p examples --bin hot_restart -- --control control.sock --port 7401
//! listening on 127.0.0.1:7401
//! $ echo hello | nc -N 127.0.0.1 7401
//! .. hello
//! $ cargo run --release -p examples --bin hot_restart -- --control control.sock
//! listening on 127.0.0.1:7401
//! $ echo 'and you?' | nc -N 127.0.0.1 7401
//! .. and you?
//! ```
//!
//! Each line is answered with the number of the process and itself. The second server takes over from
//! the first, which ends, and goes on with its connections, also in the middle of a line.
//!
//! The processes talk over a Unix socket:
//!
//! | message | bytes | descriptors |
//! |---|---|---|
//! | the listening sockets | one | the TCP listener, the control socket |
//! | ready, from a candidate | one | |
//! | it is chosen: it accepts; the running one does no more, and finishes what is under way | one | |
//! | a connection | a length of four bytes, and as many that were read and not served | its socket |
//! | that was all | a length that none has | |
//! | received, from the successor | one | |
//! | they are its own from here on | one | |
//!
//! Before the last message the running server has all connections, and goes on with them if the
//! successor dies, or takes longer than `--patience`; the successor does not touch them. Any number may
//! ask at a time; the first that is ready is chosen.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::error::Error;
use std::future::pending;
use std::io::{self, ErrorKind};
use std::net;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net as unix;
use std::path::{Path, PathBuf};
use std::process;
use std::rc::Rc;
use std::time::Duration;

use clap::Parser;
use futures_lite::future::or;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::future::timeout;
use glommio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use glommio::sync::{CancellationToken, Gate};
use glommio::task::JoinSet;
use glommio::timer::sleep;
use glommio::{LocalExecutorBuilder, PanicPolicy, spawn_local};

/// Answers lines, and hands over to its successor.
#[derive(Debug, Parser)]
struct Options {
    /// Port to listen on, if there is no server to take over from; 0 takes a free one.
    #[arg(long, default_value_t = 7401)]
    port: u16,

    /// Unix socket on which a successor asks for the sockets.
    #[arg(long)]
    control: PathBuf,

    /// How long a candidate may take until it is ready, and the successor until it has all connections.
    #[arg(long, default_value = "5s")]
    patience: humantime::Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let executor = LocalExecutorBuilder::default()
        .on_task_panic(PanicPolicy::Isolate)
        .make()?;
    executor.run(run(&options.control, options.port, *options.patience))
}

/// What the connections of a generation share.
struct Server {
    /// Given when the successor is ready.
    leaving: CancellationToken,
    /// The connections.
    gate: Gate,
    /// Those that are to go on in the successor.
    left: RefCell<Vec<Connection>>,
}

async fn run(control: &Path, port: u16, patience: Duration) -> Result<(), Box<dyn Error>> {
    let (mut sockets, running) = match ask(control).await? {
        Some((sockets, running)) => (sockets, Some(running)),
        None => {
            let sockets = Sockets {
                listener: TcpListener::bind((net::Ipv4Addr::LOCALHOST, port))?,
                control: UnixListener::bind(control)?,
            };
            (sockets, None)
        }
    };
    println!("listening on {}", sockets.listener.local_addr()?);
    let mut server = Server::new();
    let mut taking_over = running.map(|running| spawn_local(take_over(server.clone(), running)));
    loop {
        let serve = async {
            accept(&server, &sockets.listener).await;
            unreachable!("it accepts until it is dropped");
        };
        let mut successor = or(serve, successor(&sockets, patience)).await;

        eprintln!("handing over");
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
            timeout(patience, send_all(&mut successor, &left)).await??;
            Ok::<_, io::Error>(())
        };
        let Err(error) = sends.await else {
            eprintln!("handed {} connections over", left.len());
            return Ok(());
        };
        // It knows by the end of the stream that nothing is its own.
        drop(successor);
        eprintln!("going on, as the successor does not: {error}");
        sockets = Sockets {
            listener: listener.into(),
            control: control.into(),
        };
        server = Server::new();
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
            Ok((mut candidate, true)) => match candidate.write_all(&[CHOSEN]).await {
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

/// Gives a candidate the sockets, and waits until it is ready.
async fn offer(
    sockets: [OwnedFd; 2],
    mut candidate: UnixStream,
    patience: Duration,
) -> io::Result<UnixStream> {
    let fds = sockets.each_ref().map(OwnedFd::as_fd);
    let offered = async {
        candidate.send_with_fds(&[1], &fds).await?;
        candidate.read_exact(&mut [0; 1]).await
    };
    timeout(patience, offered).await??;
    Ok(candidate)
}

/// Serves the connections of the running server, which ends then.
async fn take_over(server: Rc<Server>, mut running: UnixStream) {
    match receive_all(&mut running).await {
        Ok(connections) => {
            for connection in connections {
                server.serve(connection.stream, connection.unserved);
            }
        }
        Err(error) => eprintln!("the server before this one goes on, or has ended: {error}"),
    }
}

impl Server {
    fn new() -> Rc<Server> {
        Rc::new(Server {
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

/// A connection between two requests, or in the middle of receiving one.
struct Connection {
    stream: TcpStream,
    /// Read from it, and not served.
    unserved: Vec<u8>,
}

/// The sockets that all generations share.
struct Sockets {
    listener: TcpListener,
    control: UnixListener,
}

impl Sockets {
    /// Descriptors of both, for a candidate.
    fn duplicate(&self) -> io::Result<[OwnedFd; 2]> {
        let fds = [self.listener.as_fd(), self.control.as_fd()];
        let [listener, control] = fds.map(|fd| fd.try_clone_to_owned());
        Ok([listener?, control?])
    }
}

/// Asks the running server for its sockets, and waits until it has chosen this one as its successor. `None` if
/// there is none. If it has chosen another one, or has ended, asks anew.
async fn ask(control: &Path) -> io::Result<Option<(Sockets, UnixStream)>> {
    loop {
        let asked = async {
            let mut running = UnixStream::connect(control).await?;
            let (_, fds) = running.recv_with_fds(&mut [0; 1]).await?;
            running.write_all(&[READY]).await?;
            running.read_exact(&mut [0; 1]).await?;
            Ok::<_, io::Error>((fds, Some(running)))
        };
        let (fds, running) = match asked.await {
            Ok(answer) => answer,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                // The file of a server that was killed.
                std::fs::remove_file(control)?;
                return Ok(None);
            }
            // It is ending: the kernel closes its sockets one by one. Or it has chosen another.
            Err(error) if is_end(&error) => (Vec::new(), None),
            Err(error) => return Err(error),
        };
        if let (Ok([listener, control]), Some(running)) = (<[OwnedFd; 2]>::try_from(fds), running) {
            let sockets = Sockets {
                listener: net::TcpListener::from(listener).into(),
                control: unix::UnixListener::from(control).into(),
            };
            return Ok(Some((sockets, running)));
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// The other end of a stream has gone.
fn is_end(error: &io::Error) -> bool {
    let kinds = [
        ErrorKind::ConnectionReset,
        ErrorKind::BrokenPipe,
        ErrorKind::UnexpectedEof,
    ];
    kinds.contains(&error.kind())
}

/// Hands the connections over. After an error they are not the successor's.
async fn send_all(successor: &mut UnixStream, connections: &[Connection]) -> io::Result<()> {
    for Connection { stream, unserved } in connections {
        let mut message = (unserved.len() as u32).to_le_bytes().to_vec();
        message.extend(unserved);
        let sent = successor.send_with_fds(&message, &[stream.as_fd()]).await?;
        successor.write_all(&message[sent..]).await?;
    }
    successor.write_all(&ALL.to_le_bytes()).await?;
    successor.read_exact(&mut [0; 1]).await?;
    // One byte: it is written, or it is not.
    successor.write_all(&[YOURS]).await
}

/// All connections of the running server, which are this one's from here on.
async fn receive_all(running: &mut UnixStream) -> io::Result<Vec<Connection>> {
    let mut connections = Vec::new();
    loop {
        let mut length = [0; 4];
        let (read, mut fds) = running.recv_with_fds(&mut length).await?;
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        running.read_exact(&mut length[read..]).await?;
        let length = u32::from_le_bytes(length);
        if length == ALL {
            break;
        }
        let fd = fds.pop();
        let fd = fd.ok_or_else(|| io::Error::other("a connection came without its socket"))?;
        let mut unserved = vec![0; length as usize];
        running.read_exact(&mut unserved).await?;
        let stream = net::TcpStream::from(fd).into();
        connections.push(Connection { stream, unserved });
    }
    running.write_all(&[RECEIVED]).await?;
    running.read_exact(&mut [0; 1]).await?;
    Ok(connections)
}

const READY: u8 = 1;
const CHOSEN: u8 = 2;
const RECEIVED: u8 = 3;
const YOURS: u8 = 4;

/// In place of a length: there are no more connections.
const ALL: u32 = u32::MAX;

/// The longest line that is read.
const LINE_BYTES: usize = 4096;
