//! What the tasks of an endpoint and its handles share.

use super::EndpointStats;
use super::limits::{Client, Handshakes, Limits};
use super::ticks::Ticks;
use crate::connection::State;
use crate::panics::{caught, log_error};
use crate::shards::{Membership, Passed};
use crate::socket::{Datagram, Socket};
use crate::waiters::{WaiterList, wake};
use bytes::Bytes;
use glommio::time::now;
use glommio::timer::DelayQueue;
use quinn_proto::{
    ConnectionError, ConnectionHandle, DatagramEvent, EndpointConfig, EndpointEvent, RetryError,
    ServerConfig, Transmit, VarInt,
};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell, RefMut};
use std::collections::VecDeque;
use std::io;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

pub(crate) struct Shared {
    proto: RefCell<quinn_proto::Endpoint>,
    /// `None` once the driver is gone: handles that are kept do not keep the port.
    socket: RefCell<Option<Rc<Socket>>>,
    /// By their handles. A connection leaves when it is drained.
    connections: RefCell<FxHashMap<ConnectionHandle, Rc<State>>>,
    /// Those that the driver is to look at.
    ready: RefCell<VecDeque<Rc<State>>>,
    /// What the endpoint itself has to say: resets, refusals, retries, versions.
    responses: RefCell<VecDeque<(Transmit, Vec<u8>)>>,
    /// Not accepted yet. Their number is limited by the configuration of the server.
    incoming: RefCell<VecDeque<quinn_proto::Incoming>>,
    /// One timer for each connection, for losses, pacing, keep-alives and idleness alike.
    pub(super) timers: DelayQueue<ConnectionHandle>,
    pub(super) ticks: Ticks,
    driver: RefCell<Option<Waker>>,
    /// The code and reason of connections that come after the endpoint was closed.
    closed: RefCell<Option<(VarInt, Bytes)>>,
    /// Endpoints that the user has.
    pub(super) handles: Cell<usize>,
    /// [`Incoming`](super::Incoming)s that the user has.
    pub(super) undecided: Cell<usize>,
    /// Whether the driver is gone, and its executor most likely, too.
    is_abandoned: Cell<bool>,
    /// Which of the shards of an address it is.
    shard: Option<Arc<Membership>>,
    pub(super) limits: Cell<Limits>,
    pub(super) handshakes: Handshakes,
    pub(super) stats: Cell<EndpointStats>,
    pub(super) incoming_waiters: WaiterList,
    pub(super) idle_waiters: WaiterList,
}

/// A client was asked to prove its address, or refused. There may be another one.
pub(super) struct TurnedAway;

/// Responses that wait for the driver, which sends many by one call. Further ones are sent at once.
const RESPONSES: usize = 64;

impl Shared {
    pub(super) fn new(
        config: EndpointConfig,
        server: Option<ServerConfig>,
        socket: Rc<Socket>,
        shard: Option<Arc<Membership>>,
    ) -> Rc<Shared> {
        let server = server.map(Arc::new);
        let allow_mtu_discovery = socket.never_fragments();
        let proto = quinn_proto::Endpoint::new(Arc::new(config), server, allow_mtu_discovery, None);
        Rc::new(Shared {
            proto: RefCell::new(proto),
            socket: RefCell::new(Some(socket)),
            connections: RefCell::default(),
            ready: RefCell::default(),
            responses: RefCell::default(),
            incoming: RefCell::default(),
            timers: DelayQueue::new(),
            ticks: Ticks::new(now()),
            driver: RefCell::default(),
            closed: RefCell::default(),
            handles: Cell::new(1),
            undecided: Cell::default(),
            is_abandoned: Cell::default(),
            shard,
            limits: Cell::default(),
            handshakes: Handshakes::default(),
            stats: Cell::default(),
            incoming_waiters: WaiterList::default(),
            idle_waiters: WaiterList::default(),
        })
    }

    pub(super) fn proto(&self) -> RefMut<'_, quinn_proto::Endpoint> {
        self.proto.borrow_mut()
    }

    pub(crate) fn socket(&self) -> Option<Rc<Socket>> {
        self.socket.borrow().clone()
    }

    /// Goes on with another socket. The connections are told that their address has changed.
    pub(super) fn rebind(&self, socket: Rc<Socket>) {
        let old = self.socket.borrow_mut().replace(socket);
        drop(old);
        for state in self.all_connections() {
            state.proto.borrow_mut().local_address_changed();
            self.schedule(&state);
        }
    }

    pub(super) fn all_connections(&self) -> Vec<Rc<State>> {
        let connections = self.connections.borrow();
        connections.values().map(Rc::clone).collect()
    }

    pub(super) fn open_connections(&self) -> usize {
        self.connections.borrow().len()
    }

    pub(super) fn connection(&self, handle: ConnectionHandle) -> Option<Rc<State>> {
        self.connections.borrow().get(&handle).cloned()
    }

    /// Whether `state` has not left yet.
    pub(super) fn has(&self, state: &Rc<State>) -> bool {
        let connections = self.connections.borrow();
        let listed = connections.get(&state.handle);
        listed.is_some_and(|listed| Rc::ptr_eq(listed, state))
    }

    /// Adds a connection that the protocol has just made; of `client`, which is among the handshakes,
    /// or of this side.
    pub(super) fn insert(
        self: &Rc<Self>,
        handle: ConnectionHandle,
        proto: quinn_proto::Connection,
        client: Option<Client>,
    ) -> Rc<State> {
        let state = State::new(self, handle, proto);
        if let Some(client) = client {
            self.count(|stats| stats.accepted += 1);
            let limit = self.limits.get().handshake_timeout;
            state.begin_handshake(client, limit.and_then(|limit| now().checked_add(limit)));
        }
        let same = self
            .connections
            .borrow_mut()
            .insert(handle, Rc::clone(&state));
        assert!(
            same.is_none(),
            "a handle was given out anew before its connection had left"
        );
        let closed = self.closed.borrow().clone();
        if let Some((code, reason)) = closed {
            state.close(code, reason);
        }
        self.schedule(&state);
        state
    }

    /// Has the driver look at `state`.
    pub(crate) fn schedule(&self, state: &Rc<State>) {
        if self.is_abandoned.get() || state.is_queued.replace(true) {
            return;
        }
        self.ready.borrow_mut().push_back(Rc::clone(state));
        self.wake_driver();
    }

    pub(super) fn next_ready(&self) -> Option<Rc<State>> {
        let state = self.ready.borrow_mut().pop_front()?;
        state.is_queued.set(false);
        Some(state)
    }

    pub(super) fn next_response(&self) -> Option<(Transmit, Vec<u8>)> {
        self.responses.borrow_mut().pop_front()
    }

    pub(super) fn has_work(&self) -> bool {
        !self.ready.borrow().is_empty() || !self.responses.borrow().is_empty() || self.is_refusing()
    }

    /// Whether there are clients that come too late.
    fn is_refusing(&self) -> bool {
        self.takes_none() && !self.incoming.borrow().is_empty()
    }

    /// Refuses one of them, if there are.
    pub(super) fn refuse_late(&self) -> bool {
        if !self.is_refusing() {
            return false;
        }
        let incoming = self.incoming.borrow_mut().pop_front();
        incoming
            .into_iter()
            .for_each(|incoming| self.refuse(incoming));
        if self.is_idle() {
            self.idle_waiters.wake_all();
        }
        true
    }

    /// Whether no more connections come in.
    fn takes_none(&self) -> bool {
        self.handles.get() == 0 || self.closed.borrow().is_some()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.open_connections() == 0 && !self.is_refusing()
    }

    /// Whether there is nothing left to do, and no way to give it any.
    pub(super) fn is_finished(&self) -> bool {
        self.handles.get() == 0
            && self.undecided.get() == 0
            && self.open_connections() == 0
            && !self.has_work()
    }

    pub(super) fn wake_driver(&self) {
        let waker = self.driver.borrow_mut().take();
        if let Some(waker) = waker {
            wake(waker);
        }
    }

    pub(super) fn set_driver(&self, waker: &Waker) {
        let waker = waker.clone();
        let replaced = self.driver.borrow_mut().replace(waker);
        drop(replaced);
    }

    /// Takes a datagram from the socket, which may be for another shard.
    pub(super) fn receive(&self, now: Instant, datagram: Datagram, touched: &mut Vec<Rc<State>>) {
        self.count(|stats| stats.received += 1);
        let own = match &self.shard {
            None => Some(datagram),
            Some(shard) => match shard.pass_on(datagram) {
                Passed::Own(datagram) => Some(datagram),
                Passed::On => {
                    self.count(|stats| stats.passed_on += 1);
                    None
                }
                Passed::Nowhere => {
                    self.count(|stats| stats.not_passed_on += 1);
                    None
                }
            },
        };
        if let Some(datagram) = own {
            self.handle(now, datagram, touched);
        }
    }

    /// Takes a datagram that another shard has passed on.
    pub(super) fn take_over(&self, now: Instant, datagram: Datagram, touched: &mut Vec<Rc<State>>) {
        self.count(|stats| stats.taken_over += 1);
        self.handle(now, datagram, touched);
    }

    pub(super) fn count(&self, event: impl FnOnce(&mut EndpointStats)) {
        let mut stats = self.stats.get();
        event(&mut stats);
        self.stats.set(stats);
    }

    /// Hands a datagram to the protocol. A connection that it is for is added to `touched`.
    fn handle(&self, now: Instant, datagram: Datagram, touched: &mut Vec<Rc<State>>) {
        let mut response = Vec::new();
        let is_initial = datagram.is_initial();
        let buffered = self.proto().incoming_buffer_bytes();
        let handled = caught(|| {
            self.proto().handle(
                now,
                datagram.remote,
                datagram.local_ip,
                datagram.ecn,
                datagram.payload,
                &mut response,
            )
        });
        let Some(event) = handled else {
            // Of a token log, or of what makes the keys of a first packet.
            return log_error("the protocol has panicked, and a datagram is lost");
        };
        match event {
            None => {
                // Otherwise it is a further one of a client that waits.
                if is_initial && self.proto().incoming_buffer_bytes() == buffered {
                    self.count(|stats| stats.initials_ignored += 1);
                }
            }
            Some(DatagramEvent::Response(transmit)) => self.respond(transmit, response),
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                let Some(state) = self.connection(handle) else {
                    return;
                };
                if self
                    .with_proto(&state, |proto| proto.handle_event(event))
                    .is_none()
                {
                    return;
                }
                // Those of one batch that are for one connection mostly follow each other.
                if !touched.last().is_some_and(|last| Rc::ptr_eq(last, &state)) {
                    touched.push(state);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.arrive(incoming),
        }
    }

    fn arrive(&self, incoming: quinn_proto::Incoming) {
        if self.takes_none() {
            self.refuse(incoming);
            return;
        }
        self.incoming.borrow_mut().push_back(incoming);
        self.incoming_waiters.wake_all();
    }

    /// Takes the next client, if one may be accepted or turned away now.
    pub(super) fn next_incoming(&self) -> Option<Result<quinn_proto::Incoming, TurnedAway>> {
        let limits = self.limits.get();
        if self.takes_none() || self.handshakes.count() >= limits.handshakes {
            return None;
        }
        let incoming = self.incoming.borrow_mut().pop_front()?;
        let client = Client::of(&incoming);
        if self.open_connections() + self.undecided.get() >= limits.connections {
            self.refuse(incoming);
        } else if self.handshakes.against(client) < limits.handshakes_per_address {
            return Some(Ok(incoming));
        } else if client.is_validated {
            self.refuse(incoming);
        } else if let Err(error) = self.retry(incoming) {
            self.refuse(error.into_incoming());
        }
        Some(Err(TurnedAway))
    }

    /// A place among those that may be accepted has become free.
    pub(super) fn wake_accepting(&self) {
        if !self.incoming.borrow().is_empty() {
            self.incoming_waiters.wake_all();
        }
    }

    pub(crate) fn end_handshake(&self, client: Client) {
        self.handshakes.end(client);
        self.wake_accepting();
    }

    pub(super) fn ignore(&self, incoming: quinn_proto::Incoming) {
        self.count(|stats| stats.ignored += 1);
        self.proto().ignore(incoming);
    }

    pub(super) fn retry(&self, incoming: quinn_proto::Incoming) -> Result<(), RetryError> {
        let mut response = Vec::new();
        let transmit = self.proto().retry(incoming, &mut response)?;
        self.count(|stats| stats.retried += 1);
        self.respond(transmit, response);
        Ok(())
    }

    pub(super) fn refuse(&self, incoming: quinn_proto::Incoming) {
        self.count(|stats| stats.refused += 1);
        let mut response = Vec::new();
        let transmit = self.proto().refuse(incoming, &mut response);
        self.respond(transmit, response);
    }

    pub(super) fn respond(&self, transmit: Transmit, response: Vec<u8>) {
        if self.responses.borrow().len() < RESPONSES {
            self.responses.borrow_mut().push_back((transmit, response));
            self.wake_driver();
            return;
        }
        let Some(socket) = self.socket() else { return };
        if let Err(error) = socket.try_send(&transmit, &response) {
            let is_full = error.kind() == io::ErrorKind::WouldBlock;
            self.count(|stats| match is_full {
                true => stats.answers_dropped += 1,
                false => stats.sends_failed += 1,
            });
        }
    }

    /// Exchanges what connection and endpoint have for each other. False if that was the last, and
    /// the connection has left the endpoint, or had before.
    pub(super) fn exchange(&self, state: &Rc<State>) -> bool {
        while self.has(state) {
            let event = state.proto.borrow_mut().poll_endpoint_events();
            let Some(event) = event else { return true };
            let is_drained = event.is_drained();
            let answer = self.proto().handle_event(state.handle, event);
            if is_drained {
                // At once: its handle may be given out again.
                self.remove(state);
                return false;
            }
            if let Some(answer) = answer {
                state.proto.borrow_mut().handle_event(answer);
            }
        }
        false
    }

    /// Has the protocol do something for a connection. If that panics, which is an error of the
    /// protocol or of what it was configured with, this one connection is lost: `None`.
    pub(super) fn with_proto<R>(
        &self,
        state: &State,
        act: impl FnOnce(&mut quinn_proto::Connection) -> R,
    ) -> Option<R> {
        let result = caught(|| act(&mut state.proto.borrow_mut()));
        if result.is_none() {
            let listed = self.connection(state.handle);
            if listed.is_some_and(|listed| std::ptr::eq(&*listed, state)) {
                self.proto()
                    .handle_event(state.handle, EndpointEvent::drained());
                self.remove(state);
            }
            state.break_off("the protocol has panicked");
        }
        result
    }

    fn remove(&self, state: &State) {
        if let Some((key, _)) = state.timer.take() {
            self.timers.remove(key);
        }
        let removed = self.connections.borrow_mut().remove(&state.handle);
        drop(removed);
        if self.is_idle() {
            self.idle_waiters.wake_all();
        }
        if self.open_connections() == 0 {
            self.wake_driver();
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.borrow().is_some() || self.is_abandoned.get()
    }

    pub(super) fn close(&self, code: VarInt, reason: &[u8]) {
        let reason = Bytes::copy_from_slice(reason);
        let first = self
            .closed
            .borrow_mut()
            .get_or_insert((code, reason))
            .clone();
        self.incoming_waiters.wake_all();
        // It refuses those that wait to be accepted, a few at a time.
        self.wake_driver();
        let (code, reason) = first;
        for state in self.all_connections() {
            if !state.proto.borrow().is_closed() {
                state.close(code, reason.clone());
            }
        }
    }

    /// The driver is gone: no connection has a future any more.
    pub(super) fn abandon(&self) {
        self.is_abandoned.set(true);
        let connections = mem::take(&mut *self.connections.borrow_mut());
        let ready = mem::take(&mut *self.ready.borrow_mut());
        let incoming = mem::take(&mut *self.incoming.borrow_mut());
        self.timers.clear();
        for incoming in incoming {
            self.proto().ignore(incoming);
        }
        for state in connections.into_values() {
            let drained = EndpointEvent::drained();
            self.proto().handle_event(state.handle, drained);
            state.timer.take();
            state.break_off("the executor of the endpoint has ended");
        }
        let socket = self.socket.borrow_mut().take();
        drop((ready, socket));
        if let Some(shard) = &self.shard {
            shard.leave();
        }
        self.incoming_waiters.wake_all();
        self.idle_waiters.wake_all();
    }

    pub(super) fn lost_error(&self) -> Option<ConnectionError> {
        self.is_abandoned
            .get()
            .then_some(ConnectionError::LocallyClosed)
    }
}
