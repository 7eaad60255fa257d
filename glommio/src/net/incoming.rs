//! The connections of a listener as a stream.

#![forbid(unsafe_code)]

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use socket2::Socket;

use super::Result;
use super::accept_queue::{Accept, Acceptor};

/// One connection after the other, each as an `S`. Never ends.
pub(super) struct Incoming<'a, S> {
    accept: Accept<'a>,
    yields: PhantomData<fn() -> S>,
}

impl<'a, S> Incoming<'a, S> {
    pub(super) fn new(acceptor: &'a Acceptor) -> Self {
        Incoming {
            accept: acceptor.accept(),
            yields: PhantomData,
        }
    }
}

impl<S: From<Socket>> Stream for Incoming<'_, S> {
    type Item = Result<S>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let accepted = ready!(Pin::new(&mut self.accept).poll(cx));
        let stream = accepted.map(|fd| S::from(Socket::from(fd)));
        Poll::Ready(Some(stream.map_err(Into::into)))
    }
}
