//! Sockets of a simulated network.

use std::net::Shutdown;

use glommio::future::timeout;
use glommio::net::{self, DatagramPool, Ecn, Segments};
use glommio::simulation::{self, Fault, Simulation, SimulationBuilder};
use glommio::time;

use super::{HOUR, MILLISECOND, SECOND, pause, power_cut};
use crate::common::prelude::*;

/// Echoes what connections send.
async fn echo() -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:7000")?;
    loop {
        let mut stream = listener.accept().await?;
        spawn_local(async move {
            let mut buffer = vec![0; 1000];
            loop {
                let read = stream.read(&mut buffer).await?;
                if read == 0 {
                    break stream.close().await;
                }
                stream.write_all(&buffer[..read]).await?;
            }
        })
        .detach();
    }
}

async fn connect(address: &str) -> TcpStream {
    loop {
        match TcpStream::connect(address).await {
            Ok(stream) => return stream,
            // Not up yet.
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(libc::ECONNREFUSED), "{error}");
                sleep(MILLISECOND).await;
            }
        }
    }
}

fn with_echo() -> SimulationBuilder {
    Simulation::builder().node("server", 2, echo)
}

#[run_test]
fn a_round_trip_takes_the_latency_of_both_directions() {
    with_echo()
        .network(|it| it.latency(10 * MILLISECOND..10 * MILLISECOND))
        .client("client", || async {
            drop(connect("server:7000").await);
            let start = time::now();
            // A name would be looked up first.
            let mut stream = connect("10.0.0.1:7000").await;
            assert_eq!(time::now() - start, 20 * MILLISECOND, "the handshake");
            stream.set_nodelay(true).expect("the option is there");
            for n in 0..100 {
                let start = time::now();
                stream.write_all(&[n]).await.expect("it reads");
                let mut byte = [0];
                stream.read_exact(&mut byte).await.expect("it answers");
                assert_eq!((byte, time::now() - start), ([n], 20 * MILLISECOND));
            }
        })
        .run()
        .expect("nothing fails");
}

/// The data of many connections, all there and in order, over a network that loses and reorders.
#[run_test]
fn streams_are_complete_over_a_bad_network() {
    let run = |seed| {
        with_echo()
            .seed(seed)
            .network(|it| {
                it.latency(MILLISECOND..20 * MILLISECOND)
                    .loss(0.05)
                    .duplicate(0.05)
                    .reorder(0.1)
            })
            .client("client", || async {
                let tasks: Vec<_> = (0..20_u8)
                    .map(|n| {
                        spawn_local(async move {
                            let stream = connect("server:7000").await;
                            let (mut reader, mut writer) = futures_lite::io::split(stream);
                            let sent: Vec<u8> =
                                (0..20_000_u32).map(|i| (i % 251) as u8 ^ n).collect();
                            let expected = sent.clone();
                            let sending = spawn_local(async move {
                                writer.write_all(&sent).await?;
                                writer.close().await
                            });
                            let mut received = Vec::new();
                            reader
                                .read_to_end(&mut received)
                                .await
                                .expect("it is not reset");
                            assert!(received == expected);
                            sending.await.expect("all is sent");
                        })
                    })
                    .collect();
                join_all(tasks).await;
            })
            .run()
            .expect("nothing fails")
    };
    for seed in 0..5 {
        assert_eq!(run(seed), run(seed));
    }
}

#[run_test]
fn errors_are_those_of_linux() {
    with_echo()
        .client("client", || async {
            let errno = |error: glommio::GlommioError<()>| error.raw_os_error();
            let refused = TcpStream::connect("client:1")
                .await
                .expect_err("nothing listens");
            assert_eq!(errno(refused), Some(libc::ECONNREFUSED));
            let unknown = TcpStream::connect("nowhere:1")
                .await
                .expect_err("there is no such node");
            assert!(unknown.to_string().contains("nowhere"), "{unknown}");
            let bound = TcpListener::bind("10.0.0.1:80").expect_err("it is the server's address");
            assert_eq!(errno(bound), Some(libc::EADDRNOTAVAIL));
            let mut stream = connect("10.0.0.1:7000").await;
            assert_eq!(
                stream.peer_addr().expect("it is connected"),
                "10.0.0.1:7000".parse().unwrap()
            );
            assert!(
                stream
                    .local_addr()
                    .expect("it is bound")
                    .to_string()
                    .starts_with("10.0.0.2:")
            );
            stream
                .shutdown(Shutdown::Write)
                .await
                .expect("it is connected");
            assert_eq!(stream.read(&mut [0]).await.expect("the end"), 0);
            let broken = stream.write(&[0]).await.expect_err("it is shut");
            assert_eq!(broken.kind(), io::ErrorKind::BrokenPipe);
            let found: Vec<_> = net::lookup_host("server:7")
                .await
                .expect("it is there")
                .collect();
            assert_eq!(found, ["10.0.0.1:7".parse().unwrap()]);
        })
        .run()
        .expect("nothing fails");
}

#[run_test]
fn read_timeouts_go_by_the_simulated_clock() {
    Simulation::builder()
        .node("server", 1, || async {
            let listener = TcpListener::bind("0.0.0.0:7000")?;
            let _silent = listener.accept().await?;
            std::future::pending::<Result<(), glommio::GlommioError<()>>>().await
        })
        .client("client", || async {
            let mut stream = connect("server:7000").await;
            stream.set_read_timeout(Some(HOUR)).expect("it is not zero");
            let start = time::now();
            let error = stream.read(&mut [0]).await.expect_err("nothing comes");
            assert_eq!(
                (error.kind(), time::now() - start),
                (io::ErrorKind::TimedOut, HOUR)
            );
        })
        .run()
        .expect("nothing fails");
}

#[run_test]
fn datagrams_are_lost_doubled_and_reordered_but_never_invented() {
    let received = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&received);
    Simulation::builder()
        .seed(1)
        .network(|it| {
            it.latency(MILLISECOND..5 * MILLISECOND)
                .loss(0.2)
                .duplicate(0.1)
                .reorder(0.2)
        })
        .node("receiver", 1, move || {
            let log = Rc::clone(&log);
            async move {
                let socket = UdpSocket::bind("0.0.0.0:9")?;
                let mut buffer = [0; 100];
                loop {
                    let (length, from) = socket.recv_from(&mut buffer).await?;
                    assert_eq!((length, from.ip().to_string()), (8, "10.0.0.2".into()));
                    let number = u64::from_le_bytes(buffer[..8].try_into().expect("eight"));
                    log.borrow_mut().push(number);
                    if false {
                        return Ok::<_, glommio::GlommioError<()>>(());
                    }
                }
            }
        })
        .client("sender", || async {
            let socket = UdpSocket::bind("0.0.0.0:0").expect("a port is free");
            for n in 0..1000_u64 {
                socket
                    .send_to(&n.to_le_bytes(), "receiver:9")
                    .await
                    .expect("it is sent");
                sleep(MILLISECOND).await;
            }
            sleep(SECOND).await;
        })
        .run()
        .expect("nothing fails");
    let received = received.borrow();
    let mut distinct = received.clone();
    distinct.sort();
    distinct.dedup();
    assert!((700..900).contains(&distinct.len()), "{}", distinct.len());
    assert!(received.len() > distinct.len() + 20, "some come twice");
    assert!(!received.is_sorted(), "some overtake others");
    assert!(distinct.last() < Some(&1000));
}

#[run_test]
fn segments_and_batches_go_one_datagram_at_a_time() {
    Simulation::builder()
        .node("echo", 1, || async {
            let socket = UdpSocket::bind("0.0.0.0:9")?;
            socket.set_gro(true)?;
            socket.set_receive_ecn(true)?;
            let pool = DatagramPool::new(2, DatagramPool::MAX_BYTES);
            let mut received = Vec::new();
            while socket.recv_many(&pool, &mut received).await? > 0 {
                for datagrams in received.drain(..) {
                    let (bytes, to) = (datagrams.bytes(), datagrams.from());
                    let back = Segments::new(bytes, bytes.len())
                        .to(to)
                        .ecn(datagrams.ecn());
                    socket.send_segments(&back).await?;
                }
            }
            Ok::<_, glommio::GlommioError<()>>(())
        })
        .client("client", || async {
            let socket = UdpSocket::bind("0.0.0.0:0").expect("a port is free");
            socket.connect("echo:9").await.expect("it has a name");
            let bytes: Vec<_> = (0..=255).collect();
            let segments = Segments::new(&bytes, 60).ecn(Some(Ecn::Ect0));
            let begin = time::now();
            let at = begin + SECOND;
            socket
                .send_segments_at(&segments, at)
                .await
                .expect("it is sent");
            assert!(time::now() >= at);

            let pool = DatagramPool::new(64, 50);
            let mut received = Vec::new();
            while received.len() < 5 {
                let received = socket.recv_many(&pool, &mut received).await;
                received.expect("they come back");
            }
            let mut expected: Vec<_> = bytes.chunks(60).map(|it| &it[..it.len().min(50)]).collect();
            for datagrams in received {
                let place = expected.iter().position(|it| *it == datagrams.bytes());
                let whole = expected.remove(place.expect("it was sent"));
                assert_eq!(datagrams.is_truncated(), whole.len() == 50);
                assert_eq!((datagrams.ecn(), datagrams.destination()), (None, None));
            }
            assert_eq!(expected.len(), 0);
            let error = socket
                .set_transmit_times(true)
                .expect_err("nothing holds datagrams");
            assert!(
                error.to_string().contains("leave transmit times off"),
                "{error}"
            );
        })
        .run()
        .expect("nothing fails");
}

#[run_test]
fn unix_sockets_work_within_a_node() {
    Simulation::builder()
        .client("client", || async {
            let listener = UnixListener::bind("/socket").expect("the name is free");
            let server = spawn_local(async move {
                let mut stream = listener.accept().await.expect("one connects");
                let mut text = [0; 5];
                stream.read_exact(&mut text).await.expect("it sends");
                stream.write_all(&text).await.expect("it reads");
            });
            let mut stream = UnixStream::connect("/socket").await.expect("it listens");
            stream.write_all(b"hello").await.expect("it reads");
            let mut text = [0; 5];
            stream.read_exact(&mut text).await.expect("it answers");
            assert_eq!(&text, b"hello");
            server.await;
            let (one, other) = UnixDatagram::pair().expect("descriptors are free");
            one.send(b"datagram").await.expect("there is room");
            let mut text = [0; 10];
            assert_eq!(other.recv(&mut text).await.expect("it is there"), 8);
            let (mut one, mut other) = UnixStream::pair().expect("descriptors are free");
            one.write_all(&[7; 100]).await.expect("there is room");
            drop(one);
            let mut all = Vec::new();
            other.read_to_end(&mut all).await.expect("it is there");
            assert_eq!(all, [7; 100]);
        })
        .client("other", || async {
            sleep(SECOND).await;
            let error = UnixStream::connect("/socket")
                .await
                .expect_err("that is another node's");
            assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        })
        .run()
        .expect("nothing fails");
}

#[run_test]
fn a_partition_keeps_nodes_apart_until_it_ends() {
    let group = |names: &[&str]| names.iter().map(|it| it.to_string()).collect::<Vec<_>>();
    with_echo()
        .at(
            SECOND,
            Fault::Partition {
                groups: vec![group(&["server"]), group(&["client"])],
            },
        )
        .at(20 * SECOND, Fault::Heal)
        .client("client", || async {
            let mut stream = connect("server:7000").await;
            let mut byte = [0];
            stream.write_all(&[1]).await.expect("it reads");
            stream.read_exact(&mut byte).await.expect("it answers");
            sleep(2 * SECOND).await;
            stream.write_all(&[2]).await.expect("there is room");
            let answer = timeout(10 * SECOND, stream.read_exact(&mut byte)).await;
            assert!(answer.is_err(), "nothing passes");
            stream
                .read_exact(&mut byte)
                .await
                .expect("what was lost was sent again");
            assert_eq!(byte, [2]);
            assert!(simulation::elapsed() >= 20 * SECOND);
        })
        .run()
        .expect("nothing fails");
}

#[run_test]
fn connections_of_a_node_without_power_end_with_a_reset() {
    let cut = power_cut("server", SECOND);
    with_echo()
        .at(SECOND, cut)
        .client("client", || async {
            let mut stream = connect("server:7000").await;
            sleep(5 * SECOND).await;
            stream.write_all(&[1]).await.expect("there is room");
            let error = stream
                .read(&mut [0])
                .await
                .expect_err("the server has forgotten it");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
            let mut stream = connect("server:7000").await;
            stream.write_all(&[1]).await.expect("it reads");
            stream.read_exact(&mut [0]).await.expect("it answers");
        })
        .run()
        .expect("nothing fails");
}

#[run_test]
fn a_flood_is_held_back_by_full_buffers() {
    let sent = Rc::new(Cell::new(0));
    let count = Rc::clone(&sent);
    Simulation::builder()
        .node("slow", 1, || async {
            let listener = TcpListener::bind("0.0.0.0:7000")?;
            let mut stream = listener.accept().await?;
            sleep(60 * SECOND).await;
            let mut all = Vec::new();
            stream.read_to_end(&mut all).await?;
            assert!(all.iter().all(|byte| *byte == 7));
            simulation::note(format!("{} bytes", all.len()));
            Ok::<_, io::Error>(())
        })
        .client("flood", move || {
            let count = Rc::clone(&count);
            async move {
                let mut stream = connect("slow:7000").await;
                loop {
                    let written = timeout(10 * SECOND, stream.write(&[7; 10_000])).await;
                    match written {
                        Ok(written) => count.set(count.get() + written.expect("it stays open")),
                        Err(_) => return,
                    }
                }
            }
        })
        .run_for(200 * SECOND)
        .expect("nothing fails");
    let most = 4 << 20;
    assert!((100_000..most).contains(&sent.get()), "{}", sent.get());
}

#[run_test]
fn a_peer_that_stands_still_answers_later() {
    let pause = pause("server", 30 * SECOND);
    with_echo()
        .at(SECOND, pause)
        .client("client", || async {
            let mut stream = connect("server:7000").await;
            sleep(2 * SECOND).await;
            stream.write_all(&[1]).await.expect("there is room");
            stream.read_exact(&mut [0]).await.expect("it answers");
            let at = simulation::elapsed();
            assert!(
                31 * SECOND <= at && at < 31 * SECOND + Duration::from_millis(500),
                "{at:?}"
            );
        })
        .run()
        .expect("nothing fails");
}
