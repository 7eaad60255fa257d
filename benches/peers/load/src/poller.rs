//! Which of many sockets have news.

use std::io;
use std::os::fd::AsFd;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use crate::server::PATIENCE;

/// An epoll descriptor and space for its events.
pub struct Poller {
    epoll: Epoll,
    events: Vec<EpollEvent>,
}

impl Poller {
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            events: vec![EpollEvent::empty(); 256],
        })
    }

    /// Has `key` reported whenever `socket` receives something, or is closed by the peer. Each arrival is told once:
    /// the load never leaves anything unread.
    pub fn add(&self, socket: impl AsFd, key: usize) -> io::Result<()> {
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
        self.epoll.add(socket, EpollEvent::new(flags, key as u64))?;
        Ok(())
    }

    /// Waits for news, and passes on the keys of those that have any.
    ///
    /// # Errors
    /// If there are none for a long time.
    pub fn wait(&mut self) -> io::Result<impl Iterator<Item = usize> + '_> {
        let timeout = EpollTimeout::try_from(PATIENCE).expect("a few seconds fit");
        let count = self.epoll.wait(&mut self.events, timeout)?;
        match count {
            0 => Err(io::Error::other("the server does not answer any more")),
            _ => Ok(self.events[..count].iter().map(|it| it.data() as usize)),
        }
    }
}
