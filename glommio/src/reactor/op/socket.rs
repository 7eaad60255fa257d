//! Making connections and accepting them.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use socket2::SockAddr;

use super::{Op, SinkOp};
use crate::ring::{Outcome, Submission};
use crate::sys::socket::Socket;

/// Accepts a connection on `listener`.
#[derive(Debug)]
pub(crate) struct AcceptOne {
    pub(crate) listener: RawFd,
}

/// Connects `socket`, which is the output, and closed if the operation fails or is given up.
#[derive(Debug)]
pub(crate) struct Connect {
    pub(crate) socket: Socket,
    /// Boxed for its size.
    pub(crate) address: Box<SockAddr>,
}

impl SinkOp for AcceptOne {
    type Item = io::Result<OwnedFd>;

    fn submission(&self) -> Submission<'static> {
        Submission::accept(self.listener)
    }
}

impl Op for Connect {
    type Output = Socket;

    const WAITS_FOR_DEVICE: bool = false;

    fn submission(&mut self) -> Submission<'_> {
        Submission::connect(self.socket.as_raw_fd(), &self.address)
    }

    fn complete(self, outcome: Outcome) -> io::Result<Socket> {
        outcome.result()?;
        Ok(self.socket)
    }
}
