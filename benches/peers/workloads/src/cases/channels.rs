//! Channels: within an executor, between two, and between many.

use std::time::Instant;

use crate::channels::{Channels, Meshes, Receiver, Sender};
use crate::machine::{Placement, resident_bytes};
use crate::samples::{Batches, middle, nanoseconds};
use crate::{Runtime, converse, report};

/// `local-ping-pong`, ns: two tasks of one executor and two channels with capacity for one item; a trip there and back.
pub fn local_ping_pong<R: Channels>() {
    const BATCHES: usize = 1500;
    const TRIPS_PER_BATCH: usize = 200;
    let ns = R::run(async {
        let (ping, mut pinged) = R::bounded(1);
        let (pong, mut ponged) = R::bounded(1);
        let echo = R::spawn(async move {
            while let Some(number) = pinged.receive().await {
                pong.send(number).await;
            }
        });
        let ns = Batches::new(BATCHES, TRIPS_PER_BATCH)
            .run(async |trips| {
                for number in 0..trips as u64 {
                    ping.send(number).await;
                    assert_eq!(ponged.receive().await, Some(number));
                }
            })
            .await;
        drop(ping);
        echo.await;
        ns
    });
    report("local-ping-pong", ns);
}

/// `local-bounded`, ns per item: one task sends to another through a channel with capacity for 64 items, as fast as both can.
pub fn local_bounded<R: Channels>() {
    let (sender, receiver) = R::bounded(64);
    report("local-bounded", local_stream::<R>(sender, receiver));
}

/// `local-unbounded`, ns per item: the same without a bound; the sender lets others run after each 64.
pub fn local_unbounded<R: Channels>() {
    let (sender, receiver) = R::unbounded();
    report("local-unbounded", local_stream::<R>(sender, receiver));
}

fn local_stream<R: Runtime>(
    sender: impl Sender + 'static,
    mut receiver: impl Receiver + 'static,
) -> f64 {
    const BATCHES: usize = 500;
    const ITEMS_PER_BATCH: usize = 64 * 32;
    R::run(async move {
        let producer = R::spawn(async move {
            for number in 0..(BATCHES * ITEMS_PER_BATCH) as u64 {
                sender.send(number).await;
                if number % 64 == 63 {
                    R::yield_now().await;
                }
            }
        });
        let ns = Batches::new(BATCHES, ITEMS_PER_BATCH)
            .run(async |items| {
                for _ in 0..items {
                    std::hint::black_box(receiver.receive().await);
                }
            })
            .await;
        producer.await;
        ns
    })
}

/// `shared-stream`, ns per item: a task of one executor sends to a task of another, as fast as both can, through a channel
/// with capacity for 1024 items. `shared-stream-apart`: on two CPUs.
pub fn shared_stream<R: Channels>(placement: Placement) {
    let ns = one_way::<R>(placement, 1024, 2000, async || ());
    report(&placement.row("shared-stream"), ns);
}

/// `shared-single`, ns per item: the same, and the sender lets other tasks run after each item.
/// `shared-single-apart`: on two CPUs.
pub fn shared_single<R: Channels>(placement: Placement) {
    let ns = one_way::<R>(placement, 1024, 300, async || R::yield_now().await);
    report(&placement.row("shared-single"), ns);
}

fn one_way<R: Channels>(
    placement: Placement,
    capacity: usize,
    batches: usize,
    after_each: impl AsyncFn() + Send + 'static,
) -> f64 {
    const ITEMS_PER_BATCH: usize = 1000;
    let (sender, receiver) = R::shared(capacity);
    let produce = async move || {
        let sender = R::connect_sender(sender).await;
        for number in 0..(batches * ITEMS_PER_BATCH) as u64 {
            sender.send(number).await;
            after_each().await;
        }
    };
    converse::<R, _>(placement, produce, async move || {
        let mut receiver = R::connect_receiver(receiver).await;
        let receive = async |items| {
            for _ in 0..items {
                assert!(receiver.receive().await.is_some());
            }
        };
        Batches::new(batches, ITEMS_PER_BATCH).run(receive).await
    })
}

/// `shared-rtt`, µs: two executors with nothing else to do, and a channel in each direction; the middle of 10,000 trips
/// there and back. `shared-rtt-apart`: on two CPUs.
pub fn shared_round_trip<R: Channels>(placement: Placement) {
    const TRIPS: usize = 10_000;
    const WARM_UP: usize = 1_000;
    let (ping, pinged) = R::shared(1);
    let (pong, ponged) = R::shared(1);
    let echo = async move || {
        let mut pinged = R::connect_receiver(pinged).await;
        let pong = R::connect_sender(pong).await;
        while let Some(number) = pinged.receive().await {
            pong.send(number).await;
        }
    };
    let rtt = converse::<R, _>(placement, echo, async move || {
        let ping = R::connect_sender(ping).await;
        let mut ponged = R::connect_receiver(ponged).await;
        let trip = async || {
            ping.send(7).await;
            assert_eq!(ponged.receive().await, Some(7));
        };
        middle(TRIPS, WARM_UP, trip).await
    });
    report(&placement.row("shared-rtt"), rtt / 1e3);
}

/// `mesh-2`, ns per message: each of two executors sends to the other and receives from it, through channels with capacity for
/// 128 items; from joining to the last message, as seen by the slowest. They run where the scheduler puts them.
pub fn mesh_of_2<R: Meshes>() {
    report("mesh-2", all_to_all::<R>(2, 200_000));
}

/// `mesh-8`, ns per message: the same with eight executors, each with each.
pub fn mesh_of_8<R: Meshes>() {
    report("mesh-8", all_to_all::<R>(8, 10_000));
}

fn all_to_all<R: Meshes>(peers: usize, messages_each: u64) -> f64 {
    let mesh = R::mesh(peers, 128);
    let executors: Vec<_> = (0..peers)
        .map(|_| {
            let mesh = mesh.clone();
            R::start(move || async move {
                let peer = std::rc::Rc::new(R::join(mesh).await);
                let begin = Instant::now();
                let others = (0..peers).filter(|&other| other != R::id(&peer));
                let tasks: Vec<_> = others
                    .flat_map(|other| {
                        let (from, to) = (peer.clone(), peer.clone());
                        let sending = R::spawn(async move {
                            for number in 0..messages_each {
                                R::send_to(&from, other, number).await;
                            }
                        });
                        let receiving = R::spawn(async move {
                            for number in 0..messages_each {
                                assert_eq!(R::receive_from(&to, other).await, number);
                            }
                        });
                        [sending, receiving]
                    })
                    .collect();
                for task in tasks {
                    task.await;
                }
                nanoseconds(begin.elapsed())
            })
        })
        .collect();
    let slowest = executors.into_iter().map(|join| join()).fold(0.0, f64::max);
    let messages = (peers * (peers - 1)) as f64 * messages_each as f64;
    slowest / messages
}

/// `local-memory`, bytes: resident memory that each of 10,000 channels within an executor adds, with capacity for 16 numbers,
/// before anything is sent.
pub fn local_memory<R: Channels>() {
    let bytes = R::run(memory_of(async || R::bounded(16)));
    report("local-memory", bytes);
}

/// `shared-memory`, bytes: the same of channels between executors, connected where that is to be done. Both ends are on
/// one.
pub fn shared_memory<R: Channels>() {
    let bytes = R::run(memory_of(async || {
        let (sender, receiver) = R::shared(16);
        let sender = R::spawn(R::connect_sender(sender));
        let receiver = R::connect_receiver(receiver).await;
        (sender.await, receiver)
    }));
    report("shared-memory", bytes);
}

async fn memory_of<C>(make: impl AsyncFn() -> C) -> f64 {
    const CHANNELS: usize = 10_000;
    // Written to once, so that the list itself is not counted; and what a process pays once is paid.
    let mut channels: Vec<Option<C>> = Vec::with_capacity(CHANNELS);
    channels.resize_with(CHANNELS, || None);
    channels[0] = Some(make().await);
    let before = resident_bytes();
    for channel in &mut channels[1..] {
        *channel = Some(make().await);
    }
    resident_bytes().saturating_sub(before) as f64 / (CHANNELS - 1) as f64
}
