//! One connection, as the endpoint and the handles of the user share it.

use crate::endpoint::{Client, Shared};
use crate::waiters::{WaiterList, wake};
use bytes::Bytes;
use glommio::time::now;
use glommio::timer::delay_queue::Key;
use quinn_proto::{
    ConnectionError, ConnectionHandle, Dir, Event, StreamEvent, StreamId, TransportError,
    TransportErrorCode, VarInt,
};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::mem;
use std::rc::Rc;
use std::task::Waker;
use std::time::Instant;

/// A connection that is not drained yet, or that still has handles.
///
/// Nothing is borrowed while wakers are woken, so that they may do anything with the connection.
pub(crate) struct State {
    pub(crate) handle: ConnectionHandle,
    pub(crate) endpoint: Rc<Shared>,
    pub(crate) proto: RefCell<quinn_proto::Connection>,
    /// Why it is lost, once it is. Set before it is drained.
    error: RefCell<Option<ConnectionError>>,
    is_connected: Cell<bool>,
    /// Of a client that was accepted: who it is, and when the handshake is to be over.
    handshake: Cell<Option<(Client, Option<Instant>)>>,
    has_handshake_data: Cell<bool>,
    /// Whether it is among those that the driver is to look at.
    pub(crate) is_queued: Cell<bool>,
    /// Its one timer, and when that fires.
    pub(crate) timer: Cell<Option<(Key, Instant)>>,
    readers: RefCell<FxHashMap<StreamId, Waker>>,
    writers: RefCell<FxHashMap<StreamId, Waker>>,
    stops: RefCell<FxHashMap<StreamId, Rc<WaiterList>>>,
    pub(crate) waiters: Waiters,
}

/// Tasks that wait for something of the whole connection.
#[derive(Default)]
pub(crate) struct Waiters {
    pub(crate) handshake: WaiterList,
    pub(crate) connected: WaiterList,
    pub(crate) closed: WaiterList,
    open: [WaiterList; 2],
    accept: [WaiterList; 2],
    pub(crate) datagram: WaiterList,
    pub(crate) datagram_space: WaiterList,
}

impl Waiters {
    pub(crate) fn open(&self, dir: Dir) -> &WaiterList {
        &self.open[dir as usize]
    }

    pub(crate) fn accept(&self, dir: Dir) -> &WaiterList {
        &self.accept[dir as usize]
    }

    fn wake_all(&self) {
        let lists = [&self.handshake, &self.connected, &self.closed];
        let streams = self.open.iter().chain(&self.accept);
        let datagrams = [&self.datagram, &self.datagram_space];
        for list in lists.into_iter().chain(streams).chain(datagrams) {
            list.wake_all();
        }
    }
}

/// Which half of a stream a task waits for.
#[derive(Clone, Copy)]
pub(crate) enum Half {
    Read,
    Write,
}

impl State {
    pub(crate) fn new(
        endpoint: &Rc<Shared>,
        handle: ConnectionHandle,
        proto: quinn_proto::Connection,
    ) -> Rc<State> {
        Rc::new(State {
            handle,
            endpoint: Rc::clone(endpoint),
            proto: RefCell::new(proto),
            error: RefCell::default(),
            is_connected: Cell::default(),
            handshake: Cell::default(),
            has_handshake_data: Cell::default(),
            is_queued: Cell::default(),
            timer: Cell::default(),
            readers: RefCell::default(),
            writers: RefCell::default(),
            stops: RefCell::default(),
            waiters: Waiters::default(),
        })
    }

    pub(crate) fn error(&self) -> Option<ConnectionError> {
        self.error.borrow().clone()
    }

    pub(crate) fn check(&self) -> Result<(), ConnectionError> {
        match &*self.error.borrow() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.is_connected.get()
    }

    pub(crate) fn begin_handshake(&self, client: Client, ends: Option<Instant>) {
        self.handshake.set(Some((client, ends)));
    }

    /// The latest moment, if it is under way.
    pub(crate) fn handshake_ends(&self) -> Option<Instant> {
        self.handshake.get()?.1
    }

    fn end_handshake(&self) {
        if let Some((client, _)) = self.handshake.take() {
            self.endpoint.end_handshake(client);
        }
    }

    pub(crate) fn has_handshake_data(&self) -> bool {
        self.has_handshake_data.get()
    }

    /// Has the driver send what there is to send.
    pub(crate) fn schedule(self: &Rc<Self>) {
        self.endpoint.schedule(self);
    }

    /// The waker of the task that waits for a stream. One task does: its methods take `&mut self`.
    pub(crate) fn wait_for_stream(&self, half: Half, stream: StreamId, waker: &Waker) {
        let waker = waker.clone();
        let replaced = self.streams(half).borrow_mut().insert(stream, waker);
        drop(replaced);
    }

    pub(crate) fn forget_stream(&self, half: Half, stream: StreamId) {
        let forgotten = self.streams(half).borrow_mut().remove(&stream);
        drop(forgotten);
    }

    fn wake_stream(&self, half: Half, stream: StreamId) {
        let waker = self.streams(half).borrow_mut().remove(&stream);
        if let Some(waker) = waker {
            wake(waker);
        }
    }

    fn streams(&self, half: Half) -> &RefCell<FxHashMap<StreamId, Waker>> {
        match half {
            Half::Read => &self.readers,
            Half::Write => &self.writers,
        }
    }

    /// Those who wait for the peer to stop `stream`, or to have all of it.
    pub(crate) fn stop_waiters(&self, stream: StreamId) -> Rc<WaiterList> {
        Rc::clone(self.stops.borrow_mut().entry(stream).or_default())
    }

    fn wake_stopped(&self, stream: StreamId) {
        let list = self.stops.borrow_mut().remove(&stream);
        if let Some(list) = list {
            list.wake_all();
        }
    }

    /// `stream` is dropped. Those who wait still hear of it.
    pub(crate) fn forget_stops(&self, stream: StreamId) {
        let mut stops = self.stops.borrow_mut();
        if stops
            .get(&stream)
            .is_some_and(|list| Rc::strong_count(list) == 1)
        {
            stops.remove(&stream);
        }
    }

    /// Wakes the tasks that wait for what has happened since.
    pub(crate) fn deliver_events(&self) {
        loop {
            let event = self.proto.borrow_mut().poll();
            let Some(event) = event else { return };
            self.deliver(event);
        }
    }

    fn deliver(&self, event: Event) {
        match event {
            Event::HandshakeDataReady => {
                self.has_handshake_data.set(true);
                self.waiters.handshake.wake_all();
            }
            Event::Connected => {
                self.is_connected.set(true);
                self.end_handshake();
                self.waiters.connected.wake_all();
            }
            Event::ConnectionLost { reason } => self.terminate(reason),
            Event::DatagramReceived => self.waiters.datagram.wake_all(),
            Event::DatagramsUnblocked => self.waiters.datagram_space.wake_all(),
            Event::Stream(StreamEvent::Opened { dir }) => self.waiters.accept(dir).wake_all(),
            Event::Stream(StreamEvent::Available { dir }) => self.waiters.open(dir).wake_all(),
            Event::Stream(StreamEvent::Readable { id }) => self.wake_stream(Half::Read, id),
            Event::Stream(StreamEvent::Writable { id }) => self.wake_stream(Half::Write, id),
            Event::Stream(StreamEvent::Finished { id }) => self.wake_stopped(id),
            Event::Stream(StreamEvent::Stopped { id, .. }) => {
                self.wake_stopped(id);
                self.wake_stream(Half::Write, id);
            }
        }
    }

    /// Closes it from this side. The first reason stays.
    pub(crate) fn close(self: &Rc<Self>, code: VarInt, reason: Bytes) {
        // What the caller's bytes are made of is the caller's code, which is not to run while the
        // connection is borrowed.
        let copy = Bytes::copy_from_slice(&reason);
        self.proto.borrow_mut().close(now(), code, copy);
        self.terminate(ConnectionError::LocallyClosed);
        self.schedule();
    }

    /// Closes it as its handshake has taken too long.
    pub(crate) fn time_out(self: &Rc<Self>) {
        let reason = Bytes::from_static(b"the handshake has taken too long");
        self.proto
            .borrow_mut()
            .close(now(), VarInt::from_u32(0), reason);
        self.terminate(ConnectionError::TimedOut);
        self.schedule();
    }

    /// Marks it as lost, and wakes all.
    fn terminate(&self, reason: ConnectionError) {
        self.error.borrow_mut().get_or_insert(reason);
        self.end_handshake();
        for half in [Half::Read, Half::Write] {
            let wakers = mem::take(&mut *self.streams(half).borrow_mut());
            wakers.into_values().for_each(wake);
        }
        let stops = mem::take(&mut *self.stops.borrow_mut());
        for list in stops.into_values() {
            list.wake_all();
        }
        self.waiters.wake_all();
    }

    /// Nothing will be sent or received for it any more.
    pub(crate) fn break_off(&self, reason: &str) {
        self.terminate(ConnectionError::TransportError(TransportError {
            code: TransportErrorCode::INTERNAL_ERROR,
            frame: None,
            reason: reason.into(),
        }));
    }
}

/// Waits until the peer has stopped `stream`, or has all of it.
pub(crate) async fn stopped(
    state: Rc<State>,
    stream: StreamId,
) -> Result<Option<VarInt>, ConnectionError> {
    let stopped = || {
        let stopped = state.proto.borrow_mut().send_stream(stream).stopped();
        match stopped {
            Err(_) => Some(Ok(None)),
            Ok(Some(code)) => Some(Ok(Some(code))),
            Ok(None) => state.check().err().map(Err),
        }
    };
    if let Some(known) = stopped() {
        return known;
    }
    state.stop_waiters(stream).wait_until(stopped).await
}

/// What the connections, streams and pending handshakes of the user hold: when the last of them is
/// dropped, the connection is closed.
pub(crate) struct Handle(Rc<State>);

impl Handle {
    pub(crate) fn new(state: Rc<State>) -> Rc<Handle> {
        Rc::new(Handle(state))
    }

    /// The connection.
    pub(crate) fn state(&self) -> &Rc<State> {
        &self.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.0.proto.borrow().is_closed() {
            self.0.close(VarInt::from_u32(0), Bytes::new());
        }
    }
}
