//! What is written is read.

use crate::peer::{Result, client, loopback, pair, pattern, run, server, server_config};
use futures_lite::future::{or, poll_once, yield_now, zip};
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::spawn_local;
use glommio_quic::{
    Connection, ConnectionError, Endpoint, ReadError, TransportConfig, VarInt, WriteError,
};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

/// Sends every stream back, until the connection is lost.
async fn echo(connection: Connection) {
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        spawn_local(async move {
            while let Ok(Some(chunk)) = recv.read_chunk(usize::MAX, true).await {
                if send.write_all(&chunk.bytes).await.is_err() {
                    return;
                }
            }
            // It may be stopped by now.
            let _ = send.finish();
        })
        .detach();
    }
}

#[test]
fn a_stream_comes_back() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;
        spawn_local(echo(accepted)).detach();
        for length in [1, 1000, 100_000, 3_000_000] {
            let sent = pattern(length as u64, length);
            let (mut send, mut recv) = connection.open_bi().await?;
            let write = async {
                send.write_all(&sent).await?;
                send.finish()?;
                Ok::<_, Box<dyn std::error::Error>>(())
            };
            let (written, read) = zip(write, recv.read_to_end(length)).await;
            written?;
            assert!(read? == sent, "{length} bytes");
            assert_eq!(recv.read(&mut [0]).await?, None, "the end stays");
            assert_eq!(send.stopped().await?, None, "all of it was received");
        }
        Ok(())
    })
}

#[test]
fn many_streams_at_a_time() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;
        spawn_local(echo(accepted)).detach();
        // More than the peer allows at a time.
        let streams: Vec<_> = (0..500)
            .map(|number| {
                let connection = connection.clone();
                spawn_local(async move {
                    let sent = pattern(number, 5000 + number as usize);
                    let (mut send, mut recv) = connection.open_bi().await?;
                    send.write_all(&sent).await?;
                    send.finish()?;
                    assert!(
                        recv.read_to_end(sent.len()).await? == sent,
                        "stream {number}"
                    );
                    Ok::<_, Box<dyn std::error::Error>>(())
                })
            })
            .collect();
        for stream in streams {
            stream.await?;
        }
        Ok(())
    })
}

#[test]
fn streams_are_asyncread_and_asyncwrite() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;
        let mut send = connection.open_uni().await?;
        AsyncWriteExt::write_all(&mut send, b"a line\n").await?;
        send.flush().await?;
        send.close().await?;
        send.close().await?;
        let mut recv = accepted.accept_uni().await?;
        let mut text = String::new();
        recv.read_to_string(&mut text).await?;
        assert_eq!(text, "a line\n");
        let error = AsyncWriteExt::write_all(&mut send, b"more").await;
        assert_eq!(error.unwrap_err().kind(), std::io::ErrorKind::NotConnected);
        Ok(())
    })
}

#[test]
fn a_reset_and_a_stop_carry_their_codes() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;

        let mut send = connection.open_uni().await?;
        send.write_all(b"some").await?;
        let mut recv = accepted.accept_uni().await?;
        let mut buf = [0; 4];
        recv.read_exact(&mut buf).await?;
        send.reset(VarInt::from_u32(7))?;
        let reset = ReadError::Reset(VarInt::from_u32(7));
        assert_eq!(recv.read(&mut buf).await, Err(reset.clone()));
        assert_eq!(recv.read(&mut buf).await, Err(reset), "and again");
        assert_eq!(recv.received_reset().await?, Some(VarInt::from_u32(7)));
        assert_eq!(send.write(b"more").await, Err(WriteError::ClosedStream));

        let mut send = connection.open_uni().await?;
        send.write_all(b"some").await?;
        let mut recv = accepted.accept_uni().await?;
        recv.stop(VarInt::from_u32(9))?;
        assert!(
            recv.stop(VarInt::from_u32(9)).is_err(),
            "it was stopped before"
        );
        assert_eq!(send.stopped().await?, Some(VarInt::from_u32(9)));
        assert_eq!(
            send.write(b"more").await,
            Err(WriteError::Stopped(VarInt::from_u32(9)))
        );
        Ok(())
    })
}

#[test]
fn dropped_streams_are_finished_and_stopped() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;
        let mut send = connection.open_uni().await?;
        send.write_all(b"all there is").await?;
        drop(send);
        let mut recv = accepted.accept_uni().await?;
        assert_eq!(recv.read_to_end(100).await?, b"all there is");

        let mut send = connection.open_uni().await?;
        send.write_all(b"unread").await?;
        drop(accepted.accept_uni().await?);
        assert_eq!(send.stopped().await?, Some(VarInt::from_u32(0)));
        Ok(())
    })
}

#[test]
fn a_close_carries_its_code_and_reason() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;
        let waiting = accepted.clone();
        let waiting = spawn_local(async move { waiting.accept_uni().await.map(drop) });
        connection.close(VarInt::from_u32(42), b"enough");
        assert_eq!(connection.closed().await, ConnectionError::LocallyClosed);
        let lost = accepted.closed().await;
        let ConnectionError::ApplicationClosed(close) = &lost else {
            panic!("{lost}");
        };
        assert_eq!(
            (close.error_code, &close.reason[..]),
            (VarInt::from_u32(42), &b"enough"[..])
        );
        assert_eq!(waiting.await, Err(lost.clone()));
        assert_eq!(accepted.open_uni().await.map(drop), Err(lost));
        client.wait_idle().await;
        server.wait_idle().await;
        assert_eq!(
            (client.open_connections(), server.open_connections()),
            (0, 0)
        );
        Ok(())
    })
}

/// What the window of the connection says comes first in the protocol, and nothing is ever said
/// after it if no other stream is read.
#[test]
fn a_writer_that_waits_for_the_window_of_the_connection_hears_of_a_stop() -> Result {
    run(async {
        let mut transport = TransportConfig::default();
        transport.receive_window(VarInt::from_u32(10_000));
        let mut config = server_config()?;
        config.transport_config(Arc::new(transport));
        let (server, client) = (Endpoint::server(config, loopback())?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;

        let mut stopped = connection.open_uni().await?;
        stopped.write_all(b"a").await?;
        let mut finished = connection.open_uni().await?;
        finished.write_all(b"b").await?;
        let mut other = connection.open_uni().await?;
        other.write_all(&[0; 9_998]).await?;
        assert!(poll_once(other.write(b"more")).await.is_none());

        finished.finish()?;
        assert_eq!(finished.write(b"more").await, Err(WriteError::ClosedStream));

        let mut unread = accepted.accept_uni().await?;
        let stop = async {
            yield_now().await;
            unread.stop(VarInt::from_u32(7))
        };
        let (write, stop) = zip(stopped.write(b"more"), stop).await;
        stop?;
        assert_eq!(write, Err(WriteError::Stopped(VarInt::from_u32(7))));
        Ok(())
    })
}

#[test]
fn a_stream_that_is_dropped_still_tells_that_it_was_received_or_stopped() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;
        let mut send = connection.open_uni().await?;
        send.write_all(b"all").await?;
        let (received, by_number) = (send.stopped(), connection.stopped(send.id()));
        drop(send);
        let mut recv = accepted.accept_uni().await?;
        assert_eq!(recv.read_to_end(10).await?, b"all");
        assert_eq!((received.await?, by_number.await?), (None, None));

        let mut send = connection.open_uni().await?;
        send.write_all(b"some").await?;
        let stopped = spawn_local(send.stopped());
        yield_now().await;
        accepted.accept_uni().await?.stop(VarInt::from_u32(3))?;
        drop(send);
        assert!(matches!(stopped.await?, Some(code) if code == VarInt::from_u32(3)));
        Ok(())
    })
}

#[test]
fn what_a_client_may_send_before_it_is_read_is_bounded() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;
        let (mut sent, mut streams) = (0, Vec::new());
        for _ in 0..4 {
            let mut stream = connection.open_uni().await?;
            let write = async {
                loop {
                    sent += stream.write(&[7; 50_000]).await?;
                    assert!(sent <= 2_500_000, "{sent} bytes");
                }
            };
            let pause = async {
                glommio::timer::sleep(Duration::from_millis(300)).await;
                Ok::<_, WriteError>(())
            };
            or(write, pause).await?;
            streams.push(stream);
        }
        // It is what the server has chosen.
        accepted.set_receive_window(VarInt::from_u32(10_000_000));
        let mut stream = connection.open_uni().await?;
        let mut more = 0;
        while more < 1_000_000 {
            more += stream.write(&[7; 50_000]).await?;
        }
        Ok(())
    })
}

#[test]
fn keys_and_windows_change_while_data_flows() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;
        spawn_local(echo(accepted.clone())).detach();
        connection.set_send_window(10_000);
        let mut unread = connection.open_uni().await?;
        assert_eq!(unread.write(&[7; 50_000]).await?, 10_000);
        connection.set_send_window(100_000);
        for round in 0..5 {
            let sent = pattern(round, 300_000);
            let (mut send, mut recv) = connection.open_bi().await?;
            let write = async {
                send.write_all(&sent).await?;
                send.finish()?;
                Ok::<_, Box<dyn std::error::Error>>(())
            };
            connection.force_key_update();
            let (written, read) = zip(write, recv.read_to_end(sent.len())).await;
            written?;
            assert!(read? == sent, "round {round}");
        }
        assert!(connection.min_rtt() <= connection.rtt());
        assert!(connection.congestion_state().window() > 0);
        Ok(())
    })
}

/// As a program polls that has no futures to keep.
#[test]
fn streams_are_opened_accepted_and_read_by_polls() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;
        let open = async {
            let mut uni = poll_fn(|cx| connection.poll_open_uni(cx)).await?;
            let (mut send, recv) = poll_fn(|cx| connection.poll_open_bi(cx)).await?;
            let written = poll_fn(|cx| uni.poll_write_some(cx, b"uni")).await?;
            assert_eq!(written, 3);
            send.write_all(b"bi").await?;
            Ok::<_, Box<dyn std::error::Error>>((uni, send, recv))
        };
        let accept = async {
            let mut uni = poll_fn(|cx| accepted.poll_accept_uni(cx)).await?;
            let (_send, mut bi) = poll_fn(|cx| accepted.poll_accept_bi(cx)).await?;
            let mut buf = [0; 10];
            assert_eq!(
                poll_fn(|cx| uni.poll_read_some(cx, &mut buf)).await?,
                Some(3)
            );
            let chunk = poll_fn(|cx| bi.poll_read_chunk(cx, 10, true)).await?;
            assert_eq!(chunk.ok_or("the end")?.bytes, "bi");
            Ok::<_, Box<dyn std::error::Error>>(())
        };
        let (opened, read) = zip(open, accept).await;
        opened?;
        read
    })
}
