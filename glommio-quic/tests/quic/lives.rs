//! Datagrams, closing, futures that are dropped, wakers that panic.

use crate::peer::{Result, client, impatient, loopback, pair, pattern, run, server};
use bytes::Bytes;
use futures_lite::future::{or, poll_once, yield_now, zip};
use glommio::timer::sleep;
use glommio::{LocalExecutor, spawn_local};
use glommio_quic::quinn_proto::RttEstimator;
use glommio_quic::quinn_proto::congestion::{Controller, ControllerFactory};
use glommio_quic::{Connection, ConnectionError, Endpoint, SendDatagramError, VarInt};
use std::any::Any;
use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

#[test]
fn datagrams() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;
        let longest = connection.max_datagram_size().ok_or("no datagrams")?;
        for length in [0, 1, longest] {
            connection.send_datagram(pattern(3, length).into())?;
            assert_eq!(accepted.read_datagram().await?, pattern(3, length));
        }
        let too_long = connection.send_datagram(vec![0; 70_000].into());
        assert_eq!(too_long, Err(SendDatagramError::TooLarge));

        // More than the buffer has space for, each of them sent once there is.
        let count = 3000_u32;
        let send = async {
            for number in 0..count {
                let mut datagram = number.to_le_bytes().to_vec();
                datagram.resize(1000, 0);
                connection.send_datagram_wait(datagram.into()).await?;
            }
            connection.open_uni().await?.finish().expect("it is open");
            Ok::<_, SendDatagramError>(())
        };
        let receive = async {
            let mut last = None;
            let mut over = pin!(accepted.accept_uni());
            // The receiver may lose some; what comes is in order on this path.
            while let Some(datagram) =
                or(async { accepted.read_datagram().await.map(Some) }, async {
                    over.as_mut().await.map(|_| None)
                })
                .await?
            {
                let number = datagram
                    .first_chunk()
                    .map(|first| u32::from_le_bytes(*first));
                assert!(number > last, "{number:?} after {last:?}");
                last = number;
            }
            Ok::<_, ConnectionError>(last)
        };
        let (sent, received) = zip(send, receive).await;
        sent?;
        assert!(received?.is_some());
        Ok(())
    })
}

#[test]
fn a_closed_endpoint_tells_its_peers_and_takes_no_more() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (_accepted, connection) = pair(&server, &client).await?;
        let waiting = server.clone();
        let waiting = spawn_local(async move { waiting.accept().await.is_none() });
        yield_now().await;
        server.close(VarInt::from_u32(5), b"maintenance");
        assert!(waiting.await, "who waits to accept hears of it");
        assert!(matches!(
            connection.closed().await,
            ConnectionError::ApplicationClosed(close) if close.error_code == VarInt::from_u32(5)
        ));
        let refused = client.connect(server.local_addr()?, "localhost")?.await;
        assert!(
            matches!(refused, Err(ConnectionError::ConnectionClosed(_))),
            "{refused:?}"
        );
        server.wait_idle().await;
        assert_eq!(server.open_connections(), 0);
        Ok(())
    })
}

#[test]
fn a_dropped_connection_is_closed() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;
        let clone = connection.clone();
        drop(connection);
        let mut stream = clone.open_uni().await?;
        drop(clone);
        // The stream keeps it.
        stream.write_all(b"alive").await?;
        assert_eq!(
            &accepted
                .accept_uni()
                .await?
                .read_chunk(5, true)
                .await?
                .ok_or("end")?
                .bytes[..],
            b"alive"
        );
        drop(stream);
        assert!(matches!(
            accepted.closed().await,
            ConnectionError::ApplicationClosed(_)
        ));

        // Also one that is not connected yet.
        drop(client.connect(server.local_addr()?, "localhost")?);
        client.wait_idle().await;
        Ok(())
    })
}

/// Connections go on when the last `Endpoint` is dropped, and end when they want to.
#[test]
fn connections_outlive_their_endpoints() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;
        drop((server, client));
        let mut stream = connection.open_uni().await?;
        stream.write_all(&pattern(1, 100_000)).await?;
        stream.finish()?;
        let read = accepted.accept_uni().await?.read_to_end(100_000).await?;
        assert!(read == pattern(1, 100_000));
        connection.close(VarInt::from_u32(1), b"");
        assert!(matches!(
            accepted.closed().await,
            ConnectionError::ApplicationClosed(_)
        ));
        Ok(())
    })
}

#[test]
fn what_outlives_its_executor_is_lost_and_says_so() -> Result {
    let kept: Rc<RefCell<Option<(Endpoint, Connection)>>> = Rc::default();
    let keep = Rc::clone(&kept);
    run(async move {
        let (server, client) = (server()?, client()?);
        let (_accepted, connection) = pair(&server, &client).await?;
        *keep.borrow_mut() = Some((client, connection));
        Ok(())
    })?;
    let (endpoint, connection) = kept.take().ok_or("it was kept")?;
    assert!(matches!(
        connection.close_reason(),
        Some(ConnectionError::TransportError(_))
    ));
    LocalExecutor::default().run(async move {
        assert!(connection.open_uni().await.is_err());
        assert!(connection.closed().await.to_string().contains("executor"));
        assert!(endpoint.accept().await.is_none());
        endpoint.wait_idle().await;
        connection.close(VarInt::from_u32(0), b"");
    });
    Ok(())
}

#[test]
fn a_stream_that_is_kept_does_not_keep_the_port_of_an_executor_that_has_ended() -> Result {
    let kept = Rc::new(RefCell::new(None));
    let keep = Rc::clone(&kept);
    run(async move {
        let (server, client) = (server()?, client()?);
        // Where no other test takes the port meanwhile.
        client.rebind(std::net::UdpSocket::bind("127.0.0.2:0")?)?;
        let (_accepted, connection) = pair(&server, &client).await?;
        let stream = connection.open_uni().await?;
        *keep.borrow_mut() = Some((client.local_addr()?, client, stream));
        Ok(())
    })?;
    let (address, endpoint, _stream) = kept.take().ok_or("it was kept")?;
    std::net::UdpSocket::bind(address)?;
    let ended = std::io::ErrorKind::NotConnected;
    assert_eq!(endpoint.local_addr().unwrap_err().kind(), ended);
    let socket = std::net::UdpSocket::bind(loopback())?;
    assert_eq!(endpoint.rebind(socket).unwrap_err().kind(), ended);
    Ok(())
}

/// Also those that are in their handshake.
#[test]
fn a_closing_server_does_not_wait_for_clients_that_are_gone() -> Result {
    run(async {
        let server = server()?;
        let address = server.local_addr()?;
        let clients = std::thread::spawn(move || {
            let connected = run(async move {
                let client = client()?;
                let mut connections = Vec::new();
                for _ in 0..50 {
                    let connection = client.connect(address, "localhost")?.await?;
                    drop(connection.accept_uni().await?);
                    connections.push(connection);
                }
                let handshake = client.connect(address, "localhost")?;
                assert!(poll_once(handshake.into_future()).await.is_none());
                // Forgotten, they cannot say goodbye.
                std::mem::forget(connections);
                Ok(())
            });
            connected.map_err(|error| error.to_string())
        });
        let mut accepted = Vec::new();
        while accepted.len() < 50 {
            let incoming = server.accept().await.ok_or("closed")?;
            let connection = incoming.await?;
            connection.open_uni().await?.finish()?;
            accepted.push(connection);
        }
        glommio::executor()
            .spawn_blocking(move || clients.join())
            .await
            .expect("it has not panicked")?;
        server.close(VarInt::from_u32(1), b"over");
        server.wait_idle().await;
        assert_eq!(server.open_connections(), 0);
        Ok(())
    })
}

#[test]
fn a_silent_peer_is_given_up_and_a_kept_one_is_not() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let address = server.local_addr()?;
        let idle = Duration::from_millis(400);
        let mut config = impatient(idle)?;
        let connecting = client.connect_with(config.clone(), address, "localhost")?;
        let incoming = server.accept().await.ok_or("closed")?;
        let (accepted, silent) = zip(incoming.into_future(), connecting.into_future()).await;
        let (_accepted, silent) = (accepted?, silent?);
        assert_eq!(silent.closed().await, ConnectionError::TimedOut);

        let mut transport = glommio_quic::TransportConfig::default();
        transport.max_idle_timeout(Some(idle.try_into()?));
        transport.keep_alive_interval(Some(idle / 8));
        config.transport_config(Arc::new(transport));
        let connecting = client.connect_with(config, address, "localhost")?;
        let incoming = server.accept().await.ok_or("closed")?;
        let (accepted, kept) = zip(incoming.into_future(), connecting.into_future()).await;
        let (_accepted, kept) = (accepted?, kept?);
        sleep(idle * 4).await;
        assert_eq!(kept.close_reason(), None);
        assert!(
            kept.stats().frame_tx.ping >= 4,
            "{:?}",
            kept.stats().frame_tx
        );
        Ok(())
    })
}

/// Each future is polled once and dropped, again and again; nothing is missing or twice.
#[test]
fn futures_that_are_dropped_lose_nothing() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;
        let sent = pattern(5, 400_000);
        let writer = async {
            let mut send = connection.open_uni().await?;
            let mut rest = &sent[..];
            while !rest.is_empty() {
                match poll_once(send.write(&rest[..rest.len().min(7000)])).await {
                    Some(written) => rest = &rest[written?..],
                    None => sleep(Duration::from_micros(50)).await,
                }
                connection.send_datagram(Bytes::from_static(b"one"))?;
            }
            send.finish()?;
            Ok::<_, Box<dyn std::error::Error>>(())
        };
        let reader = async {
            let mut recv = loop {
                if let Some(stream) = poll_once(accepted.accept_uni()).await {
                    break stream?;
                }
                yield_now().await;
            };
            let (mut read, mut buf) = (Vec::new(), [0; 5000]);
            loop {
                // Nothing of this kind ever comes, and its waiters leave no trace.
                assert!(poll_once(accepted.accept_bi()).await.is_none());
                assert!(poll_once(accepted.closed()).await.is_none());
                match poll_once(recv.read(&mut buf)).await {
                    Some(length) => match length? {
                        Some(length) => read.extend_from_slice(&buf[..length]),
                        None => break,
                    },
                    None => sleep(Duration::from_micros(50)).await,
                }
                let _ = poll_once(accepted.read_datagram()).await;
            }
            Ok::<_, Box<dyn std::error::Error>>(read)
        };
        let (written, read) = zip(writer, reader).await;
        written?;
        assert!(read? == sent);
        Ok(())
    })
}

struct Panicking;

impl Wake for Panicking {
    fn wake(self: Arc<Self>) {
        panic!("a waker that panics");
    }
}

#[test]
fn wakers_that_panic_break_nothing() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;
        let panicking = Waker::from(Arc::new(Panicking));
        let mut cx = Context::from_waker(&panicking);
        let mut accept = pin!(accepted.accept_bi());
        let mut datagram = pin!(accepted.read_datagram());
        let mut closed = pin!(accepted.closed());
        assert!(accept.as_mut().poll(&mut cx).is_pending());
        assert!(datagram.as_mut().poll(&mut cx).is_pending());
        assert!(closed.as_mut().poll(&mut cx).is_pending());

        let (mut send, mut recv) = connection.open_bi().await?;
        send.write_all(b"first").await?;
        connection.send_datagram(Bytes::from_static(b"second"))?;
        assert_eq!(accepted.read_datagram().await?, "second");
        let (mut back, mut there) = accepted.accept_bi().await?;
        let mut buf = [0; 10];
        let mut read = Box::pin(there.read(&mut buf));
        while let std::task::Poll::Ready(length) = read.as_mut().poll(&mut cx) {
            assert_eq!(length?, Some(5));
            drop(read);
            read = Box::pin(there.read(&mut buf));
        }
        send.finish()?;
        back.write_all(b"back").await?;
        back.finish()?;
        assert_eq!(recv.read_to_end(10).await?, b"back");
        drop(read);
        assert_eq!(there.read(&mut buf).await?, None);
        connection.close(VarInt::from_u32(1), b"");
        assert!(matches!(
            closed.await,
            ConnectionError::ApplicationClosed(_)
        ));
        Ok(())
    })
}

/// Garbage, and packets that belong to no connection, do not get in the way of a connection.
#[test]
fn a_flood_of_garbage() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;
        let address = server.local_addr()?;
        let flood = std::thread::spawn(move || {
            let socket = std::net::UdpSocket::bind(loopback())?;
            for number in 0..20_000_u64 {
                let mut packet = pattern(number, (number as usize * 37) % 1400 + 1);
                match number % 4 {
                    // A short header, a long one of version 1, a version that is unknown.
                    0 => packet[0] = 0x40,
                    1 if packet.len() > 6 => packet[..6].copy_from_slice(&[0xc3, 0, 0, 0, 1, 8]),
                    2 if packet.len() > 6 => packet[..6].copy_from_slice(&[0xc3, 9, 9, 9, 9, 8]),
                    _ => {}
                }
                socket.send_to(&packet, address)?;
            }
            Ok::<_, std::io::Error>(())
        });
        let sent = pattern(9, 2_000_000);
        let write = async {
            let mut send = connection.open_uni().await?;
            send.write_all(&sent).await?;
            send.finish()?;
            Ok::<_, Box<dyn std::error::Error>>(())
        };
        let read = async {
            Ok::<_, Box<dyn std::error::Error>>(
                accepted.accept_uni().await?.read_to_end(sent.len()).await?,
            )
        };
        let (written, read) = zip(write, read).await;
        written?;
        assert!(read? == sent);
        flood.join().expect("it has not panicked")?;
        assert_eq!(server.open_connections(), 1);
        Ok(())
    })
}

/// It panics with the first acknowledgement after `panics` is set.
struct Panics {
    window: u64,
    panics: Arc<AtomicBool>,
}

impl Controller for Panics {
    fn on_ack(&mut self, _: Instant, _: Instant, _: u64, _: bool, _: &RttEstimator) {
        assert!(
            !self.panics.load(Ordering::Relaxed),
            "a controller that panics"
        );
    }

    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: u64) {}

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        self.window
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Panics {
            window: self.window,
            panics: Arc::clone(&self.panics),
        })
    }

    fn initial_window(&self) -> u64 {
        self.window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

struct Factory(Arc<AtomicBool>);

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Panics {
            window: 100_000,
            panics: Arc::clone(&self.0),
        })
    }
}

#[test]
fn a_panic_inside_the_protocol_loses_one_connection() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;
        let panics = Arc::new(AtomicBool::new(false));
        let mut transport = glommio_quic::TransportConfig::default();
        transport.congestion_controller_factory(Arc::new(Factory(Arc::clone(&panics))));
        let mut config = impatient(Duration::from_secs(30))?;
        config.transport_config(Arc::new(transport));
        let connecting = client.connect_with(config, server.local_addr()?, "localhost")?;
        let incoming = server.accept().await.ok_or("closed")?;
        let (broken_peer, broken) = zip(incoming.into_future(), connecting.into_future()).await;
        let (_broken_peer, broken) = (broken_peer?, broken?);

        panics.store(true, Ordering::Relaxed);
        let mut send = broken.open_uni().await?;
        send.write_all(b"acknowledge this").await?;
        assert!(broken.closed().await.to_string().contains("panicked"));
        assert!(send.write(b"more").await.is_err());
        drop((send, broken));

        let mut send = connection.open_uni().await?;
        send.write_all(b"well").await?;
        send.finish()?;
        assert_eq!(accepted.accept_uni().await?.read_to_end(10).await?, b"well");
        assert_eq!(client.open_connections(), 1);
        Ok(())
    })
}
