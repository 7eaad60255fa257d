//! What goes from a process to its successor, over a Unix stream.
//!
//! | message | bytes | descriptors |
//! |---|---|---|
//! | the listening sockets | one | the TCP listener, the control socket |
//! | ready, from the successor | one | |
//! | a connection | a length of four bytes, and as many that were read and not served | its socket |

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

/// Asks the running server for its sockets. `None` if there is none.
pub async fn ask(control: &Path) -> io::Result<Option<(Sockets, UnixStream)>> {
    loop {
        let asked = async {
            let mut running = UnixStream::connect(control).await?;
            let (_, fds) = running.recv_with_fds(&mut [0; 1]).await?;
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
            // It is ending: the kernel closes its sockets one by one.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => (Vec::new(), None),
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

/// Gives `successor` the sockets, and waits until it is ready.
pub async fn offer(sockets: &Sockets, successor: &mut UnixStream) -> io::Result<()> {
    let fds = [sockets.listener.as_fd(), sockets.control.as_fd()];
    successor.send_with_fds(&[1], &fds).await?;
    successor.read_exact(&mut [0; 1]).await
}

pub async fn say_ready(running: &mut UnixStream) -> io::Result<()> {
    running.write_all(&[1]).await
}

pub async fn send(successor: &mut UnixStream, connection: Connection) -> io::Result<()> {
    let Connection { stream, unserved } = connection;
    let mut message = (unserved.len() as u32).to_le_bytes().to_vec();
    message.extend(unserved);
    let sent = successor.send_with_fds(&message, &[stream.as_fd()]).await?;
    successor.write_all(&message[sent..]).await
}

/// The next connection, or `None` when there are no more.
pub async fn receive(running: &mut UnixStream) -> io::Result<Option<Connection>> {
    let mut length = [0; 4];
    let (read, mut fds) = running.recv_with_fds(&mut length).await?;
    let Some(fd) = fds.pop() else {
        return match read {
            0 => Ok(None),
            _ => Err(io::Error::other("a connection came without its socket")),
        };
    };
    running.read_exact(&mut length[read..]).await?;
    let mut unserved = vec![0; u32::from_le_bytes(length) as usize];
    running.read_exact(&mut unserved).await?;
    let stream = net::TcpStream::from(fd).into();
    Ok(Some(Connection { stream, unserved }))
}
