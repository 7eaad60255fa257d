//! Looks that do not wait, and several values at a time.

use glommio::channels::channel_mesh::MeshBuilder;
use glommio::channels::shared_channel;

use crate::common::prelude::*;
use crate::common::rationed::begin_spent_slice;
use crate::payload::Alive;
use crate::shared::connected;

#[track_caller]
fn assert_empty<T>(looked: Result<T, GlommioError<()>>) {
    let is_empty = matches!(
        looked,
        Err(GlommioError::WouldBlock(ResourceType::Channel(())))
    );
    assert!(is_empty, "{:?}", looked.err());
}

#[track_caller]
fn assert_over<T>(looked: Result<T, GlommioError<()>>) {
    let is_over = matches!(looked, Err(GlommioError::Closed(ResourceType::Channel(()))));
    assert!(is_over, "{:?}", looked.err());
}

/// A single poll of `recv` is refused after 32 values, once the slice is over.
#[run_test]
async fn a_drain_gets_all_of_a_thousand_values_when_the_slice_is_over() {
    let (sender, receiver) = local_channel::new_unbounded();
    (0..1000).for_each(|number| sender.try_send(number).unwrap());
    begin_spent_slice().await;
    for number in 0..1000 {
        assert_eq!(receiver.try_recv().unwrap(), number);
    }
    assert_empty(receiver.try_recv());
    drop(sender);
    assert_over(receiver.try_recv());
    assert_over(receiver.try_recv());

    let (sender, receiver) = shared_channel::new_bounded(1000);
    let (sender, receiver) = zip(sender.connect(), receiver.connect()).await;
    (0..1000).for_each(|number| sender.try_send(number).unwrap());
    begin_spent_slice().await;
    for number in 0..1000 {
        assert_eq!(receiver.try_recv().unwrap(), number);
    }
    assert_empty(receiver.try_recv());
    sender.try_send(7).unwrap();
    sender.close();
    assert_eq!(
        receiver.try_recv().unwrap(),
        7,
        "what was sent before the end"
    );
    assert_over(receiver.try_recv());
    assert_over(receiver.try_recv());
}

#[test]
fn a_oneshot_can_be_looked_at() {
    fn check<S: glommio::channels::storage::Storage>(
        make: impl Fn() -> (oneshot::Sender<u8, S>, oneshot::Receiver<u8, S>),
    ) {
        let (sender, mut receiver) = make();
        assert_empty(receiver.try_recv());
        let waiting = Polled::waiting(&mut receiver);
        sender.send(7).unwrap();
        assert!(waiting.is_woken());
        drop(waiting);
        assert_eq!(receiver.try_recv().unwrap(), 7);
        assert_over(receiver.try_recv());
        assert!(at_once(receiver).is_err(), "it was received");
        let (sender, mut receiver) = make();
        drop(sender);
        assert_over(receiver.try_recv());
    }
    check(oneshot::oneshot);
    check(oneshot::shared);
}

/// The receiver waits for nothing itself, so that nothing but its looks wakes the sender.
#[run_test]
fn looks_wake_a_sender_that_sleeps_on_another_thread() {
    let (sender, receiver) = shared_channel::new_bounded(4);
    let sending = spawn_executor(|| async move {
        let sender = sender.connect().await;
        for number in 0..10_000 {
            sender.send(number).await.unwrap();
        }
    });
    run(async {
        let receiver = receiver.connect().await;
        let mut received = Vec::new();
        loop {
            match receiver.try_recv() {
                Ok(number) => received.push(number),
                Err(GlommioError::Closed(_)) => break,
                Err(_) => glommio::executor().yield_now().await,
            }
        }
        assert!(received.into_iter().eq(0..10_000));
    });
    sending.join().unwrap();
}

#[test]
fn a_group_is_what_is_there_and_no_more_than_its_limit() {
    fn check(
        send: impl Fn(u64),
        receive: impl Fn(&mut Vec<u64>, usize) -> usize,
        close: impl FnOnce(),
    ) {
        (0..10).for_each(&send);
        let mut group = vec![100];
        assert_eq!(receive(&mut group, 0), 0);
        assert_eq!(receive(&mut group, 3), 3);
        assert_eq!(group, [100, 0, 1, 2], "it is appended");
        assert_eq!(receive(&mut group, usize::MAX), 7);
        (10..12).for_each(&send);
        close();
        assert_eq!(receive(&mut group, 100), 2);
        assert_eq!(receive(&mut group, 100), 0);
        assert!(group[1..].iter().copied().eq(0..12));
    }
    let (sender, receiver) = local_channel::new_unbounded();
    let sender = Cell::new(Some(sender));
    check(
        |number| {
            let it = sender.take().unwrap();
            it.try_send(number).unwrap();
            sender.set(Some(it));
        },
        |group, limit| at_once(receiver.recv_many(group, limit)),
        || drop(sender.take()),
    );
    let (sender, receiver) = connected(16);
    check(
        |number| sender.try_send(number).unwrap(),
        |group, limit| at_once(receiver.recv_many(group, limit)),
        || sender.close(),
    );
}

/// It waits for the first value, and takes what has come by the time it looks.
#[test]
fn a_group_waits_for_its_first_value_and_loses_none_when_it_is_given_up() {
    let alive = Alive::default();
    let (sender, receiver) = local_channel::new_unbounded();
    let mut group = Vec::new();
    let waiting = Polled::waiting(receiver.recv_many(&mut group, 8));
    (1..4).for_each(|number| drop(sender.try_send(alive.payload(number))));
    assert!(waiting.is_woken());
    drop(waiting);
    assert!(group.is_empty());
    let mut waiting = Polled::new(receiver.recv_many(&mut group, 2));
    assert_eq!(waiting.poll(), Poll::Ready(2));
    drop(waiting);
    assert_eq!((group.len(), sender.len(), alive.count()), (2, 1, 3));

    let (sender, receiver) = connected(8);
    let mut group = Vec::new();
    let waiting = Polled::waiting(receiver.recv_many(&mut group, 8));
    (0..3).for_each(|number| sender.try_send(number).unwrap());
    assert!(waiting.is_woken());
    drop(waiting);
    assert!(group.is_empty());
    let mut waiting = Polled::new(receiver.recv_many(&mut group, 8));
    assert_eq!(waiting.poll(), Poll::Ready(3));
}

#[run_test]
fn peers_of_a_mesh_can_be_looked_at() {
    let mesh = MeshBuilder::full(2, 8);
    let peers = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(2))
        .on_all_shards(|| async move {
            let (senders, receivers) = mesh.join().await.unwrap();
            let other = 1 - senders.peer_id();
            (0..3).for_each(|number| senders.try_send_to(other, number).unwrap());
            let mut group = Vec::new();
            while group.len() < 3 {
                let limit = 3 - group.len();
                let came = receivers.recv_many_from(other, &mut group, limit);
                assert!(came.await.unwrap() > 0);
            }
            assert_eq!(group, [0, 1, 2]);
            for peer in [senders.peer_id(), 2] {
                let looked = receivers.try_recv_from(peer);
                assert!(matches!(looked, Err(GlommioError::IoError(_))));
                let came = receivers.recv_many_from(peer, &mut group, 1).await;
                assert!(matches!(came, Err(GlommioError::IoError(_))));
            }
            senders.close();
            assert_eq!(receivers.recv_from(other).await.unwrap(), None);
            assert_over(receivers.try_recv_from(other));
        })
        .unwrap();
    peers.join_all().into_iter().for_each(|it| it.unwrap());
}

#[test]
fn a_local_channel_ends_with_the_last_clone_of_its_sender() {
    run(async {
        let (sender, receiver) = local_channel::new_bounded(1);
        let sending: Vec<_> = (0..4)
            .map(|task| {
                let sender = sender.clone();
                spawn_local(async move {
                    for number in 0..10 {
                        sender.send(10 * task + number).await.unwrap();
                    }
                })
            })
            .collect();
        drop(sender);
        let mut received = Vec::new();
        while let Some(number) = receiver.recv().await {
            received.push(number);
        }
        received.sort_unstable();
        assert!(received.into_iter().eq(0..40));
        join_all(sending).await;
    });
    let (sender, receiver) = local_channel::new_unbounded::<u8>();
    let clone = Rc::new(sender.clone());
    let mut waiting = Polled::waiting(receiver.recv());
    drop(sender);
    assert!(!waiting.is_woken(), "there is another one");
    drop(clone);
    assert_eq!(waiting.finish(), None);
    let (sender, receiver) = local_channel::new_unbounded();
    drop(receiver);
    assert!(sender.clone().try_send(1).is_err());
}
