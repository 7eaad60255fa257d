//! What goes from a process to its successor, over a Unix stream.
//!
//! | message | bytes | descriptors |
//! |---|---|---|
//! | the listening sockets | one | the TCP listener, the control socket |
//! | ready, from a candidate | one | |
//! | it is chosen | one | |
//! | a connection | a length of four bytes, and as many that were read and not served | its socket |
//! | that was all | a length that none has | |
//! | received, from the successor | one | |
//! | they are its own from here on | one | |
//!
//! Before the last message the running server has all connections, and goes on with them if the stream ends or
//! time is up; the successor does not touch them.

use std::io::{self, ErrorKind};
use std::net;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net as unix;
use std::path::Path;
use std::time::Duration;

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use glommio::timer::sleep;

/// A connection between two requests, or in the middle of receiving one.
pub struct Connection {
    pub stream: TcpStream,
    /// Read from it, and not served.
    pub unserved: Vec<u8>,
}

/// The sockets that all generations share.
pub struct Sockets {
    pub listener: TcpListener,
    pub control: UnixListener,
}

impl Sockets {
    /// Descriptors of both, for a candidate.
    pub fn duplicate(&self) -> io::Result<[OwnedFd; 2]> {
        let fds = [self.listener.as_fd(), self.control.as_fd()];
        let [listener, control] = fds.map(|fd| fd.try_clone_to_owned());
        Ok([listener?, control?])
    }
}

/// Asks the running server for its sockets, and waits until it has chosen this one as its successor. `None` if
/// there is none. If it has chosen another one, or has ended, asks anew.
pub async fn ask(control: &Path) -> io::Result<Option<(Sockets, UnixStream)>> {
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

/// Gives a candidate the sockets, and waits until it is ready.
pub async fn offer(sockets: [OwnedFd; 2], candidate: &mut UnixStream) -> io::Result<()> {
    let fds = sockets.each_ref().map(OwnedFd::as_fd);
    candidate.send_with_fds(&[1], &fds).await?;
    candidate.read_exact(&mut [0; 1]).await
}

pub async fn choose(candidate: &mut UnixStream) -> io::Result<()> {
    candidate.write_all(&[CHOSEN]).await
}

/// Hands the connections over. After an error they are not the successor's.
pub async fn send_all(successor: &mut UnixStream, connections: &[Connection]) -> io::Result<()> {
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
pub async fn receive_all(running: &mut UnixStream) -> io::Result<Vec<Connection>> {
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
