//! Meshes of executors: numbers, channels, and peers that go.

use std::panic::resume_unwind;
use std::sync::atomic::AtomicU64;

use glommio::ShardExitPolicy;
use glommio::channels::channel_mesh::{
    Full, FullMesh, MeshAdapter, MeshBuilder, Partial, PartialMesh, Receivers, Role, Senders,
};

use crate::common::prelude::*;

/// Has `peers` executors join a mesh, and do something with what they get.
fn on_full_mesh<F, T>(
    peers: usize,
    size: usize,
    then: impl Fn(Senders<u64>, Receivers<u64>) -> F + Send + Clone + 'static,
) -> Vec<T>
where
    F: Future<Output = T> + 'static,
    T: Send + 'static,
{
    let _watchdog = watchdog();
    let mesh = MeshBuilder::full(peers, size);
    let executors: Vec<_> = (0..peers)
        .map(|_| {
            let (mesh, then) = (mesh.clone(), then.clone());
            spawn_executor(move || async move {
                let (senders, receivers) = mesh.join().await.unwrap();
                then(senders, receivers).await
            })
        })
        .collect();
    executors.into_iter().map(|it| it.join().unwrap()).collect()
}

fn is_invalid<T>(error: &GlommioError<T>, text: &str) -> bool {
    let GlommioError::IoError(error) = error else {
        return false;
    };
    error.kind() == std::io::ErrorKind::InvalidInput && error.to_string() == text
}

fn is_full(error: GlommioError<()>) -> bool {
    let GlommioError::IoError(error) = error else {
        return false;
    };
    error.kind() == std::io::ErrorKind::Other && error.to_string() == "The channel mesh is full."
}

#[test]
fn adapters_say_who_sends_to_whom() {
    let roles = [Role::Producer, Role::Consumer, Role::Both];
    for from in roles {
        for to in roles {
            assert!(Full.connect(&from, &to));
            let expected = from == Role::Producer && to == Role::Consumer;
            assert_eq!(Partial.connect(&from, &to), expected);
        }
    }
    assert!(Full.is_full() && !Partial.is_full());
}

/// Also one of which only the bounds are known.
#[test]
fn any_mesh_can_be_sent_to_a_thread() {
    fn elsewhere<A: MeshAdapter + 'static>(mesh: MeshBuilder<u8, A>) -> usize {
        std::thread::spawn(move || mesh.nr_peers()).join().unwrap()
    }
    assert_eq!(elsewhere(MeshBuilder::full(3, 1)), 3);
    assert_eq!(elsewhere(MeshBuilder::partial(4, 1)), 4);
}

#[test]
fn every_peer_of_a_full_mesh_reaches_every_other() {
    let ids = on_full_mesh(4, 2, |senders, receivers| async move {
        let id = senders.peer_id();
        assert_eq!(receivers.peer_id(), id);
        assert_eq!(
            (senders.producer_id(), receivers.consumer_id()),
            (Some(id), Some(id))
        );
        assert_eq!((senders.nr_consumers(), receivers.nr_producers()), (4, 4));
        for peer in (0..4).filter(|&peer| peer != id) {
            senders
                .send_to(peer, 10 * id as u64 + peer as u64)
                .await
                .unwrap();
        }
        senders.close();
        senders.close();
        for peer in (0..4).filter(|&peer| peer != id) {
            let message = receivers.recv_from(peer).await.unwrap();
            assert_eq!(message, Some(10 * peer as u64 + id as u64));
            assert_eq!(receivers.recv_from(peer).await.unwrap(), None);
            assert!(senders.try_send_to(peer, 0).is_err(), "closed");
        }
        id
    });
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [0, 1, 2, 3]);
}

#[test]
fn numbers_that_are_no_peers_are_refused() {
    on_full_mesh(2, 1, |senders, mut receivers| async move {
        let id = senders.peer_id();
        let to_itself = "Local message should not be sent via channel mesh";
        let error = senders.send_to(id, 1).await.unwrap_err();
        assert!(is_invalid(&error, to_itself), "{error}");
        assert!(is_invalid(
            &senders.try_send_to(id, 1).unwrap_err(),
            to_itself
        ));
        let error = senders.send_to(2, 1).await.unwrap_err();
        assert!(
            is_invalid(&error, "Shard 2 is invalid in the channel mesh"),
            "{error}"
        );
        assert!(is_invalid(
            &senders.try_send_to(2, 1).unwrap_err(),
            to_itself
        ));

        let from_itself = "Local message should not be received from channel mesh";
        for idx in [id, 2] {
            let error = receivers.recv_from(idx).await.unwrap_err();
            assert!(is_invalid(&error, from_itself), "{error}");
        }
        let streams = receivers.streams();
        assert_eq!(streams.len(), 1);
        assert_eq!(streams[0].0, 1 - id);
        let error = receivers.recv_from(1 - id).await.unwrap_err();
        assert!(is_invalid(&error, from_itself), "it was taken out");
        assert!(receivers.streams().is_empty());
        assert_eq!(receivers.nr_producers(), 2);
    });
}

#[test]
fn full_channels_refuse() {
    let is_full = Arc::new(AtomicBool::new(false));
    on_full_mesh(2, 3, move |senders, receivers| {
        let is_full = Arc::clone(&is_full);
        async move {
            let other = 1 - senders.peer_id();
            if other == 0 {
                // Four fit: the size is rounded up.
                for number in 0..4 {
                    senders.try_send_to(other, number).unwrap();
                }
                let error = senders.try_send_to(other, 4).unwrap_err();
                assert_eq!(error.into_inner(), Some(4));
                is_full.store(true, Ordering::Relaxed);
            } else {
                while !is_full.load(Ordering::Relaxed) {
                    executor().yield_now().await;
                }
                for number in 0..4 {
                    assert_eq!(receivers.recv_from(other).await.unwrap(), Some(number));
                }
            }
        }
    });
}

/// Two meshes that are joined by the same executors in any order number them alike.
#[run_test]
fn a_peer_has_the_same_number_in_all_meshes() {
    let meshes: [FullMesh<u8>; 2] = [(); 2].map(|()| MeshBuilder::full(4, 1));
    let partial: PartialMesh<u8> = MeshBuilder::partial(4, 1);
    let executors: Vec<_> = (0..4)
        .map(|index| {
            let (mut meshes, partial) = (meshes.clone(), partial.clone());
            spawn_executor(move || async move {
                if index % 2 == 0 {
                    meshes.reverse();
                }
                let role = if index == 0 {
                    Role::Producer
                } else {
                    Role::Consumer
                };
                let partial = spawn_local(partial.join(role));
                let joining = meshes.map(|mesh| spawn_local(mesh.join()));
                let mut ids = Vec::new();
                for joining in joining {
                    ids.push(joining.await.unwrap().0.peer_id());
                }
                ids.push(partial.await.unwrap().1.peer_id());
                (executor().id(), ids)
            })
        })
        .collect();
    let mut numbered: Vec<_> = executors.into_iter().map(|it| it.join().unwrap()).collect();
    numbered.sort_unstable();
    for (rank, (_, ids)) in numbered.into_iter().enumerate() {
        assert_eq!(ids, [rank; 3], "by the ids of the executors");
    }
}

#[run_test]
fn a_partial_mesh_leads_from_producers_to_consumers() {
    let roles = [
        Role::Producer,
        Role::Consumer,
        Role::Both,
        Role::Producer,
        Role::Consumer,
        Role::Consumer,
    ];
    let mesh = MeshBuilder::partial(roles.len(), 4);
    assert_eq!(mesh.nr_peers(), 6);
    let executors: Vec<_> = roles
        .into_iter()
        .map(|role| {
            let mesh = mesh.clone();
            spawn_executor(move || async move {
                let (senders, mut receivers) = mesh.join(role).await.unwrap();
                let counts = (senders.nr_consumers(), receivers.nr_producers());
                let ids = (senders.producer_id(), receivers.consumer_id());
                match role {
                    Role::Producer => {
                        assert_eq!(counts, (3, 0));
                        assert_eq!(ids.1, None);
                        let producer = ids.0.unwrap() as u64;
                        for consumer in 0..3 {
                            let message = 10 * producer + consumer as u64;
                            senders.send_to(consumer, message).await.unwrap();
                        }
                        assert!(senders.send_to(3, 0).await.is_err());
                        vec![]
                    }
                    Role::Consumer => {
                        assert_eq!(counts, (0, 2));
                        assert_eq!(ids.0, None);
                        let consumer = ids.1.unwrap() as u64;
                        let mut received = Vec::new();
                        for (producer, stream) in receivers.streams() {
                            let messages: Vec<u64> = stream.collect().await;
                            assert_eq!(messages, [10 * producer as u64 + consumer]);
                            received.extend(messages);
                        }
                        received
                    }
                    Role::Both => {
                        assert_eq!(counts, (0, 0));
                        assert_eq!(ids, (Some(0), Some(0)));
                        vec![]
                    }
                }
            })
        })
        .collect();
    let mut all: Vec<_> = executors
        .into_iter()
        .flat_map(|it| it.join().unwrap())
        .collect();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 10, 11, 12]);
}

#[run_test]
async fn too_many_peers_are_an_error() {
    let empty: FullMesh<u8> = MeshBuilder::full(0, 1);
    assert!(is_full(empty.join().await.unwrap_err()));
    let alone: FullMesh<u8> = MeshBuilder::full(1, 1);
    let (senders, receivers) = alone.clone().join().await.unwrap();
    assert_eq!((senders.nr_consumers(), receivers.nr_producers()), (1, 1));
    // Complete: an error also for an executor that has joined.
    assert!(is_full(alone.join().await.unwrap_err()));
}

#[test]
fn joining_twice_panics_while_peers_are_missing() {
    let message = panic_of(|| {
        run(async {
            let mesh: FullMesh<u8> = MeshBuilder::full(3, 1);
            let first = spawn_local(mesh.clone().join());
            let second = mesh.join().await;
            drop((first, second.is_ok()));
        });
    });
    assert!(
        message.contains("Should not join a mesh more than once."),
        "{message}"
    );
}

#[run_test]
fn giving_up_a_join_makes_room_for_another() {
    let mesh: FullMesh<u8> = MeshBuilder::full(2, 1);
    // An executor that ends in the middle, and one that gives up and tries again.
    LocalExecutor::default().run({
        let mesh = mesh.clone();
        async move {
            spawn_local(mesh.join()).detach();
            executor().yield_now().await;
        }
    });
    let first = mesh.clone();
    let (gave_up, is_gone) = mpsc::channel();
    let first = spawn_executor(move || async move {
        assert!(poll_once(first.clone().join()).await.is_none());
        assert!(poll_once(first.clone().join()).await.is_none());
        gave_up.send(()).unwrap();
        first.join().await.unwrap().0.peer_id()
    });
    is_gone.recv().unwrap();
    let second = spawn_executor(move || async move { mesh.join().await.unwrap().0.peer_id() });
    assert_eq!(first.join().unwrap() + second.join().unwrap(), 1);
}

#[test]
fn a_mesh_can_be_printed() {
    struct Plain;
    let mesh: FullMesh<Plain> = MeshBuilder::full(3, 1);
    assert!(format!("{mesh:?}").contains("joined: 0"));
    on_full_mesh(1, 1, |senders, receivers| async move {
        assert!(format!("{senders:?} {receivers:?}").contains("peer_id: 0"));
    });
}

/// Executors end at random: before they join, while they do, and when they have.
#[test]
fn whatever_becomes_of_a_peer_the_others_end_too() {
    let _watchdog = (operations() <= 1_000_000).then(watchdog);
    for seed in 0..operations() / 2000 {
        let mesh: FullMesh<u64> = MeshBuilder::full(3, 1);
        let joined = Arc::new(AtomicUsize::new(0));
        let executors: Vec<_> = (0..4)
            .map(|index| {
                let (mesh, joined) = (mesh.clone(), Arc::clone(&joined));
                spawn_executor(move || async move {
                    let mut numbers = Numbers::new(4 * seed + index);
                    // One of the four is too many, unless another has given up meanwhile. These
                    // give up for good only if there are enough others.
                    let mut attempts = numbers.below(3);
                    let (senders, receivers) = loop {
                        if attempts > 0 {
                            attempts -= 1;
                            match poll_once(mesh.clone().join()).await {
                                None => continue,
                                Some(Ok(ends)) => break ends,
                                Some(Err(_)) => return,
                            }
                        }
                        match mesh.clone().join().await {
                            Ok(ends) => break ends,
                            Err(_) => return,
                        }
                    };
                    joined.fetch_add(1, Ordering::Relaxed);
                    let id = senders.peer_id();
                    for number in 0..numbers.below(8) {
                        for peer in (0..3).filter(|&peer| peer != id) {
                            // Who has gone, or is stuck in a send to one who waits for us, is left
                            // out.
                            drop(poll_once(senders.send_to(peer, number)).await);
                        }
                    }
                    if numbers.below(2) == 0 {
                        senders.close();
                        for peer in (0..3).filter(|&peer| peer != id) {
                            while receivers.recv_from(peer).await.unwrap().is_some() {}
                        }
                    }
                })
            })
            .collect();
        executors.into_iter().for_each(|it| it.join().unwrap());
        assert!(joined.load(Ordering::Relaxed) <= 3);
    }
}

/// A peer that panics at any of its awaits, before it has joined, while it does or later, leaves
/// what it has sent, and closes its channels. Its shard is restarted, and joins if there is a place.
#[run_test]
fn a_panic_at_any_await_of_a_peer_loses_nothing_that_was_sent() {
    let mut deaths = 0;
    for polls in 0.. {
        let mesh: FullMesh<u64> = MeshBuilder::full(3, 2);
        let others: Vec<_> = (0..2)
            .map(|_| {
                let mesh = mesh.clone();
                spawn_executor(move || exchange(mesh, Arc::default()))
            })
            .collect();
        let lives = Arc::new(AtomicUsize::new(0));
        let (begun, sent) = (Arc::clone(&lives), Arc::<Sent>::default());
        let victim = {
            let sent = Arc::clone(&sent);
            LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(1))
                .on_shard_end(ShardExitPolicy::Restart { per_minute: 9 })
                .on_all_shards(move || async move {
                    if begun.fetch_add(1, Ordering::Relaxed) == 0 {
                        // It goes with all that it waits for.
                        let mut polls_left = polls;
                        let mut peer = pin!(exchange(mesh, sent));
                        poll_fn(|cx| {
                            if polls_left == 0 {
                                resume_unwind(Box::new("as planned"));
                            }
                            polls_left -= 1;
                            peer.as_mut().poll(cx)
                        })
                        .await
                    } else {
                        exchange(mesh, Arc::default()).await
                    }
                })
                .unwrap()
        };
        let mut received: Vec<_> = others
            .into_iter()
            .filter_map(|it| it.join().unwrap())
            .collect();
        assert_eq!(received.len(), 2, "both have joined");
        received.extend(victim.join_all().into_iter().filter_map(|it| it.unwrap()));
        let (count, to) = (
            sent.count.load(Ordering::Relaxed),
            sent.to.load(Ordering::Relaxed),
        );
        if count > 0 {
            let at = received.iter().find(|&&(peer, _)| peer == to);
            assert!(
                at.unwrap().1 >= count,
                "{polls} polls: {count} sent, {received:?}"
            );
        }
        if lives.load(Ordering::Relaxed) == 1 {
            break;
        }
        deaths += 1;
    }
    // There are as many pauses as that.
    assert!(deaths >= 13, "{deaths}");
}

/// What a peer has sent to the next one, and to whom.
#[derive(Default)]
struct Sent {
    to: AtomicUsize,
    count: AtomicU64,
}

/// Joins, if there is a place, and passes numbers round: its own, and how many came.
async fn exchange(mesh: FullMesh<u64>, sent: Arc<Sent>) -> Option<(usize, u64)> {
    // Also where nothing has to be waited for, a poll ends.
    yield_now().await;
    let (senders, receivers) = mesh.join().await.ok()?;
    let id = senders.peer_id();
    let (next, previous) = ((id + 1) % 3, (id + 2) % 3);
    sent.to.store(next, Ordering::Relaxed);
    let mut received = 0;
    for number in 0..6 {
        yield_now().await;
        match senders.send_to(next, number).await {
            Ok(()) => sent.count.store(number + 1, Ordering::Relaxed),
            Err(GlommioError::Closed(ResourceType::Channel(back))) => {
                assert_eq!(back, number);
                break;
            }
            Err(error) => panic!("{error}"),
        }
        yield_now().await;
        let Some(came) = receivers.recv_from(previous).await.unwrap() else {
            break;
        };
        assert_eq!(came, received);
        received += 1;
    }
    senders.close();
    while let Some(came) = receivers.recv_from(previous).await.unwrap() {
        assert_eq!(came, received);
        received += 1;
    }
    Some((id, received))
}

fn is_incomplete<T>(joined: Result<T, GlommioError<()>>) -> bool {
    let Err(GlommioError::IoError(error)) = joined else {
        return false;
    };
    error.kind() == std::io::ErrorKind::BrokenPipe
}

/// A shard that has nothing to start with returns at once, and its builder goes with it.
#[run_test]
fn a_join_does_not_wait_for_ever_for_a_peer_that_ended_before_it_joined() {
    let mesh: FullMesh<u8> = MeshBuilder::full(3, 1);
    let number = Arc::new(AtomicUsize::new(0));
    let peers = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(3))
        .on_all_shards(move || async move {
            match number.fetch_add(1, Ordering::Relaxed) {
                0 => true,
                _ => is_incomplete(mesh.join().await),
            }
        })
        .unwrap();
    for peer in peers.join_all() {
        assert!(peer.unwrap(), "it has failed");
    }

    let mesh: PartialMesh<u8> = MeshBuilder::partial(2, 1);
    let ended = mesh.clone();
    let waiting =
        spawn_executor(move || async move { is_incomplete(mesh.join(Role::Consumer).await) });
    spawn_executor(move || async move { drop(ended) })
        .join()
        .unwrap();
    assert!(waiting.join().unwrap());
}

/// Whatever is done with a builder: as long as there is one, a peer may come.
#[run_test]
async fn a_join_waits_while_a_builder_is_left() {
    let mesh: FullMesh<u8> = MeshBuilder::full(2, 1);
    let [unused, unpolled] = [mesh.clone(), mesh.clone()];
    let mut joining = Polled::waiting(mesh.join());
    // A join that was not polled has not used its builder up.
    let unpolled = unpolled.join();
    drop(unused);
    assert!(joining.poll().is_pending());
    drop(unpolled);
    assert!(is_incomplete(joining.finish()));
}
