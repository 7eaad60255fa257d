//! Streams that are written and read by the piece.

use crate::peer::{Result, client, loopback, pair, pattern, run, server_config};
use bytes::Bytes;
use futures_lite::future::{poll_once, zip};
use glommio::timer::sleep;
use glommio_quic::{Connection, Endpoint, TransportConfig, VarInt, WriteError, Written};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// Both ends of a connection, of which the first takes 10,000 bytes of a stream before it reads.
async fn narrow() -> Result<(Connection, Connection)> {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(VarInt::from_u32(10_000));
    let mut config = server_config()?;
    config.transport_config(Arc::new(transport));
    pair(&Endpoint::server(config, loopback())?, &client()?).await
}

#[test]
fn pieces_come_whole_and_in_order() -> Result {
    run(async {
        let (accepted, connection) = narrow().await?;
        let sent = Bytes::from(pattern(1, 1_000_000));
        let write = async {
            let (mut rest, mut pieces) = (sent.clone(), Vec::new());
            let first = rest.split_to(20_000);
            while !rest.is_empty() {
                // Of many lengths, and some of none.
                let length = pieces.len() * 37 % 5000;
                pieces.push(rest.split_to(length.min(rest.len())));
            }
            let mut send = connection.open_uni().await?;
            send.write_chunk(first).await?;
            send.write_all_chunks(&mut pieces).await?;
            assert!(pieces.iter().all(Bytes::is_empty));
            let none = send.write_chunks(&mut pieces[..3]).await?;
            assert_eq!((none.bytes, none.chunks), (0, 3));
            send.finish()?;
            let error = send.write_chunk("more".into()).await;
            assert_eq!(error, Err(WriteError::ClosedStream));
            Ok::<_, Box<dyn Error>>(())
        };
        let read = async {
            let mut recv = accepted.accept_uni().await?;
            assert_eq!(recv.read_chunks(&mut []).await?, Some(0));
            let (mut read, mut pieces) = (Vec::new(), vec![Bytes::new(); 3]);
            while let Some(count) = recv.read_chunks(&mut pieces).await? {
                assert!(count > 0);
                read.extend(pieces[..count].concat());
            }
            assert_eq!(recv.read_chunks(&mut pieces).await?, None, "it stays");
            Ok::<_, Box<dyn Error>>(read)
        };
        let (written, read) = zip(write, read).await;
        written?;
        assert!(read? == sent);
        Ok(())
    })
}

#[test]
fn a_window_that_is_full_in_the_middle_of_a_piece_leaves_the_rest() -> Result {
    run(async {
        let (accepted, connection) = narrow().await?;
        let mut send = connection.open_uni().await?;
        let mut pieces = [1, 2, 3].map(|seed| Bytes::from(pattern(seed, 6000)));
        let sent = pieces.concat();
        let written = send.write_chunks(&mut pieces).await?;
        let (bytes, chunks) = (10_000, 1);
        assert_eq!(written, Written { bytes, chunks });
        assert!(pieces.concat() == sent[10_000..]);
        assert!(poll_once(send.write_chunks(&mut pieces)).await.is_none());
        assert!(pieces.concat() == sent[10_000..], "nothing was written");
        let write = async {
            send.write_all_chunks(&mut pieces).await?;
            send.finish()?;
            Ok::<_, Box<dyn Error>>(())
        };
        let mut recv = accepted.accept_uni().await?;
        let (written, read) = zip(write, recv.read_to_end(sent.len())).await;
        written?;
        assert!(read? == sent);
        Ok(())
    })
}

#[test]
fn futures_of_pieces_that_are_dropped_lose_nothing() -> Result {
    const MOMENT: Duration = Duration::from_micros(50);
    run(async {
        let (accepted, connection) = narrow().await?;
        let sent = Bytes::from(pattern(5, 300_000));
        let write = async {
            let pieces = sent.chunks(7000).map(|piece| sent.slice_ref(piece));
            let mut pieces: Vec<_> = pieces.collect();
            let mut send = connection.open_uni().await?;
            while poll_once(send.write_all_chunks(&mut pieces))
                .await
                .transpose()?
                .is_none()
            {
                sleep(MOMENT).await;
            }
            send.finish()?;
            Ok::<_, Box<dyn Error>>(())
        };
        let read = async {
            let mut recv = accepted.accept_uni().await?;
            let (mut read, mut pieces) = (Vec::new(), vec![Bytes::new(); 3]);
            loop {
                match poll_once(recv.read_chunks(&mut pieces)).await.transpose()? {
                    Some(Some(count)) => read.extend(pieces[..count].concat()),
                    Some(None) => break Ok::<_, Box<dyn Error>>(read),
                    None => sleep(MOMENT).await,
                }
            }
        };
        let (written, read) = zip(write, read).await;
        written?;
        assert!(read? == sent);
        Ok(())
    })
}
