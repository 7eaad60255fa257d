//! Local and shared channels under random operations, against a plain queue: every value once, in
//! order, and no task asleep that could go on.

use std::collections::VecDeque;

use glommio::channels::local_channel::{LocalReceiver, LocalSender};
use glommio::channels::shared_channel::{ConnectedReceiver, ConnectedSender};
use proptest::prelude::*;

use crate::common::prelude::*;
use crate::payload::{Alive, Payload, dropping};
use crate::shared::connected;

type Sent = Result<(), GlommioError<Payload>>;

/// The ends of a channel of either kind.
trait Ends: 'static {
    type Sender: 'static;
    type Receiver: 'static;

    /// A channel of about this size, and its capacity.
    fn make(size: usize) -> (Self::Sender, Self::Receiver, usize);
    fn try_send(sender: &Self::Sender, payload: Payload) -> Sent;
    async fn send(sender: &Self::Sender, payload: Payload) -> Sent;
    async fn receive(receiver: &Self::Receiver) -> Option<Payload>;
    fn try_receive(receiver: &Self::Receiver) -> Result<Payload, GlommioError<()>>;
    async fn receive_many(
        receiver: &Self::Receiver,
        group: &mut Vec<Payload>,
        most: usize,
    ) -> usize;
    /// Changes nothing.
    fn look(sender: &Self::Sender);
}

/// The two kinds, whose methods have the same names.
macro_rules! ends {
    ($kind:ident, $sender:ident, $receiver:ident, $make:ident, $look:ident) => {
        enum $kind {}

        impl Ends for $kind {
            type Sender = $sender<Payload>;
            type Receiver = $receiver<Payload>;

            fn make(size: usize) -> (Self::Sender, Self::Receiver, usize) {
                $make(size)
            }

            fn try_send(sender: &Self::Sender, payload: Payload) -> Sent {
                sender.try_send(payload)
            }

            async fn send(sender: &Self::Sender, payload: Payload) -> Sent {
                sender.send(payload).await
            }

            async fn receive(receiver: &Self::Receiver) -> Option<Payload> {
                receiver.recv().await
            }

            fn try_receive(receiver: &Self::Receiver) -> Result<Payload, GlommioError<()>> {
                receiver.try_recv()
            }

            async fn receive_many(
                receiver: &Self::Receiver,
                group: &mut Vec<Payload>,
                most: usize,
            ) -> usize {
                receiver.recv_many(group, most).await
            }

            fn look(sender: &Self::Sender) {
                let _ = $look(sender);
            }
        }
    };
}

ends!(Local, LocalSender, LocalReceiver, new_local, look_at_local);
ends!(
    Shared,
    ConnectedSender,
    ConnectedReceiver,
    new_shared,
    look_at_shared
);

fn new_local(size: usize) -> (LocalSender<Payload>, LocalReceiver<Payload>, usize) {
    let (sender, receiver) = local_channel::new_bounded(size);
    (sender, receiver, size)
}

fn new_shared(size: usize) -> (ConnectedSender<Payload>, ConnectedReceiver<Payload>, usize) {
    let (sender, receiver) = connected(size);
    (sender, receiver, size.next_power_of_two())
}

fn look_at_local(sender: &LocalSender<Payload>) -> (usize, bool) {
    (sender.len(), sender.is_full())
}

fn look_at_shared(sender: &ConnectedSender<Payload>) -> String {
    format!("{sender:?}")
}

struct Run<E: Ends> {
    capacity: usize,
    sender: Option<Rc<E::Sender>>,
    receiver: Option<Rc<E::Receiver>>,
    queued: VecDeque<u64>,
    sends: Vec<(u64, Polled<'static, Sent>)>,
    receives: Vec<Polled<'static, Option<Payload>>>,
    alive: Alive,
    next: u64,
    numbers: Numbers,
}

impl<E: Ends> Run<E> {
    fn new(seed: u64) -> Self {
        let mut numbers = Numbers::new(seed);
        let (sender, receiver, capacity) = E::make(numbers.below(4) as usize);
        Run {
            capacity,
            sender: Some(Rc::new(sender)),
            receiver: Some(Rc::new(receiver)),
            queued: VecDeque::new(),
            sends: Vec::new(),
            receives: Vec::new(),
            alive: Alive::default(),
            next: 0,
            numbers,
        }
    }

    fn operate(&mut self, operations: u64) {
        for _ in 0..operations {
            let number = self.numbers.below(1 << 32);
            match number % 16 {
                0..=3 if self.sends.len() < 5 => self.send(),
                4..=6 if self.receives.len() < 5 => self.receive(),
                7..=8 => self.poll_send(number >> 8),
                9..=10 => self.poll_receive(number >> 8),
                11 => self.drop_send(number >> 8),
                12 => self.drop_receive(number >> 8),
                13 => self.try_send(),
                14 => self.take_at_once(number >> 8),
                _ => self.poll_woken(),
            }
            self.check();
        }
    }

    /// On each wake something that changes nothing, and at times a panic.
    fn hook(&self) -> impl Fn() + use<E> {
        let sender = self.sender.as_ref().map(Rc::downgrade);
        let is_loud = self.next.is_multiple_of(3);
        move || {
            if let Some(sender) = sender.as_ref().and_then(std::rc::Weak::upgrade) {
                E::look(&sender);
            }
            if is_loud {
                quiet_panic();
            }
        }
    }

    fn payload(&mut self) -> Payload {
        self.next += 1;
        self.alive.payload(self.next)
    }

    fn send(&mut self) {
        let Some(sender) = self.sender.clone() else {
            return;
        };
        let payload = self.payload();
        let send = async move { E::send(&sender, payload).await };
        let send = Polled::hooked(send, self.hook());
        self.sends.push((self.next, send));
        self.poll_send(self.sends.len() as u64 - 1);
    }

    fn try_send(&mut self) {
        let Some(sender) = self.sender.clone() else {
            return;
        };
        let payload = self.payload();
        let sent = E::try_send(&sender, payload);
        let has_room = self.queued.len() < self.capacity && self.receiver.is_some();
        assert_eq!(sent.is_ok(), has_room);
        if has_room {
            self.queued.push_back(self.next);
        }
        dropping(|| drop(sent));
    }

    fn poll_send(&mut self, number: u64) {
        if self.sends.is_empty() {
            return;
        }
        let at = number as usize % self.sends.len();
        let (id, send) = &mut self.sends[at];
        if number.is_multiple_of(4) {
            send.change_waker();
        }
        let polled = send.poll();
        let is_closed = self.receiver.is_none();
        let has_room = self.queued.len() < self.capacity;
        assert_eq!(polled.is_ready(), has_room || is_closed);
        if let Poll::Ready(result) = polled {
            match &result {
                Ok(()) => self.queued.push_back(*id),
                Err(_) => assert!(is_closed),
            }
            dropping(|| drop(result));
            drop(self.sends.swap_remove(at));
        }
    }

    fn receive(&mut self) {
        let Some(receiver) = self.receiver.clone() else {
            return;
        };
        let receive = async move { E::receive(&receiver).await };
        self.receives.push(Polled::hooked(receive, self.hook()));
        self.poll_receive(self.receives.len() as u64 - 1);
    }

    fn poll_receive(&mut self, number: u64) {
        if self.receives.is_empty() {
            return;
        }
        let at = number as usize % self.receives.len();
        if number.is_multiple_of(4) {
            self.receives[at].change_waker();
        }
        let expected = self.queued.front().copied();
        match self.receives[at].poll() {
            Poll::Pending => assert!(expected.is_none() && self.sender.is_some()),
            Poll::Ready(payload) => {
                assert!(expected.is_some() || self.sender.is_none());
                assert_eq!(payload.as_ref().map(|it| it.number), expected);
                self.queued.pop_front();
                dropping(|| drop(payload));
                drop(self.receives.swap_remove(at));
            }
        }
    }

    /// What is there, one value or several, before those who wait for it.
    fn take_at_once(&mut self, number: u64) {
        let Some(receiver) = self.receiver.clone() else {
            return;
        };
        let mut group = Vec::new();
        let most = number as usize % 4;
        let count = if most == 0 {
            match E::try_receive(&receiver) {
                Ok(payload) => group.push(payload),
                Err(GlommioError::WouldBlock(_)) => assert!(self.sender.is_some()),
                Err(error) => {
                    assert!(matches!(error, GlommioError::Closed(_)) && self.sender.is_none());
                }
            }
            self.queued.len().min(1)
        } else if self.queued.is_empty() {
            return;
        } else {
            assert!(at_once(E::receive_many(&receiver, &mut group, most)) > 0);
            self.queued.len().min(most)
        };
        let numbers = group.iter().map(|it| it.number);
        assert!(numbers.eq(self.queued.drain(..count)));
        group.into_iter().for_each(|it| _ = dropping(|| drop(it)));
    }

    fn drop_send(&mut self, number: u64) {
        if !self.sends.is_empty() {
            let send = self.sends.swap_remove(number as usize % self.sends.len());
            dropping(|| drop(send));
        }
    }

    fn drop_receive(&mut self, number: u64) {
        if !self.receives.is_empty() {
            drop(
                self.receives
                    .swap_remove(number as usize % self.receives.len()),
            );
        }
    }

    fn poll_woken(&mut self) {
        if let Some(at) = self.sends.iter().position(|(_, it)| it.is_woken()) {
            self.poll_send(at as u64);
        } else if let Some(at) = self.receives.iter().position(Polled::is_woken) {
            self.poll_receive(at as u64);
        }
    }

    fn check(&self) {
        let sends = self.sends.iter().filter(|(_, it)| it.is_woken()).count();
        let receives = self.receives.iter().filter(|it| it.is_woken()).count();
        let room = match self.receiver {
            Some(_) => self.capacity - self.queued.len(),
            None => usize::MAX,
        };
        let values = match self.sender {
            Some(_) => self.queued.len(),
            None => usize::MAX,
        };
        assert!(sends >= room.min(self.sends.len()), "a sender sleeps on");
        assert!(
            receives >= values.min(self.receives.len()),
            "a receiver sleeps on"
        );
        let values = (self.queued.len() + self.sends.len()) as i64;
        assert_eq!(self.alive.count(), values, "each is dropped once");
    }

    /// Drops the ends, one before the other. The futures hold them, too.
    fn end(mut self) {
        if self.numbers.below(2) == 0 {
            self.receives.clear();
            dropping(|| drop(self.receiver.take()));
            self.queued.clear();
            self.check();
            while !self.sends.is_empty() {
                self.poll_send(0);
                self.check();
            }
            drop(self.sender.take());
        } else {
            while !self.sends.is_empty() {
                self.drop_send(0);
            }
            drop(self.sender.take());
            self.check();
            while !self.receives.is_empty() {
                self.poll_receive(0);
                self.check();
            }
            dropping(|| drop(self.receiver.take()));
        }
        assert_eq!(self.alive.count(), 0);
    }
}

fn random<E: Ends>(seed: u64, operations: u64) {
    let mut run = Run::<E>::new(seed);
    run.operate(operations);
    run.end();
}

proptest! {
    #[test]
    fn a_local_channel_agrees_with_a_plain_queue(seed in any::<u64>(), operations in 0..200u64) {
        random::<Local>(seed, operations);
    }

    #[test]
    fn a_shared_channel_agrees_with_a_plain_queue(seed in any::<u64>(), operations in 0..200u64) {
        random::<Shared>(seed, operations);
    }
}

fn long_run<E: Ends>() {
    let _watchdog = (operations() <= 1_000_000).then(watchdog);
    for seed in 0..10 {
        random::<E>(seed, operations() / 10);
    }
}

#[test]
fn a_local_channel_loses_no_wake_up_in_a_long_run() {
    long_run::<Local>();
}

#[test]
fn a_shared_channel_loses_no_wake_up_in_a_long_run() {
    long_run::<Shared>();
}
