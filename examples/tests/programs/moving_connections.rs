//! TLS connections that change executors under traffic: the recipe
//! `docs/recipes/moving-connections.md` at work.

use std::error::Error;
use std::io::Read;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_lite::future::try_zip;
use futures_lite::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, io};
use futures_rustls::TlsConnector;
use futures_rustls::rustls::pki_types::ServerName;
use futures_rustls::rustls::{ClientConfig, ServerConnection};
use glommio::channels::shared_channel::{
    ConnectedSender, SharedReceiver, SharedSender, new_bounded,
};
use glommio::net::{DetachedTcpStream, Preallocated, TcpListener, TcpStream};
use glommio::sync::Semaphore;
use glommio::{LocalExecutor, LocalExecutorBuilder, future, spawn_local};

type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const PATIENCE: Duration = Duration::from_secs(300);
const EXECUTORS: usize = 4;
const CONNECTIONS: usize = 16;
const MOVES: usize = 10_000;

/// Bytes that a client may send before it has got their echo.
const WINDOW: u64 = 16 << 10;

/// A connection that may be sent to another executor: the state of TLS and what it stands on.
struct Session {
    tls: ServerConnection,
    transport: DetachedTcpStream<Preallocated>,
}

/// What all shards count.
#[derive(Default)]
struct Counts {
    moves: AtomicUsize,
    /// Moves of a stream that had received bytes and not handed them on.
    moves_with_unread_bytes: AtomicUsize,
    ended: AtomicUsize,
}

#[test]
fn ten_thousand_moves_under_traffic_lose_nothing() {
    if !crate::tls::has_instructions() {
        return;
    }
    let counts = Arc::new(Counts::default());
    let (mut senders, receivers): (Vec<_>, Vec<_>) = (0..EXECUTORS)
        .map(|_| new_bounded::<Session>(CONNECTIONS))
        .unzip();
    // Each hands on to the next.
    senders.rotate_left(1);
    let first = new_bounded::<Session>(CONNECTIONS);
    let mut accepted = Some(first.1);
    let shards: Vec<_> = (senders.into_iter().zip(receivers))
        .map(|(next, inbox)| {
            let (counts, accepted) = (counts.clone(), accepted.take());
            LocalExecutorBuilder::default()
                .spawn(|| shard(accepted, inbox, next, counts))
                .expect("an executor starts")
        })
        .collect();
    let clients = LocalExecutor::default().run(async {
        let clients = clients(first.0, counts.clone());
        future::timeout(PATIENCE, clients).await
    });
    clients
        .expect("the test does not hang")
        .expect("no client misses anything");
    for shard in shards {
        shard
            .join()
            .expect("it has ended")
            .expect("no connection fails");
    }
    assert!(counts.moves.load(Ordering::Relaxed) >= MOVES);
    assert_ne!(counts.moves_with_unread_bytes.load(Ordering::Relaxed), 0);
}

/// Opens all connections, hands their other ends to the first shard, and sends and receives on all.
async fn clients(to_shards: SharedSender<Session>, counts: Arc<Counts>) -> Result {
    let to_shards = to_shards.connect().await;
    let server_config = crate::tls::server_config().map_err(|error| error.to_string())?;
    let client_config =
        crate::tls::client_config(crate::tls::AUTHORITY).map_err(|error| error.to_string())?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut clients = Vec::new();
    for number in 0..CONNECTIONS {
        let stream = TcpStream::connect(listener.local_addr()?).await?;
        let server = listener.accept().await?;
        // Smaller than a record, so that records are in two places when a connection moves.
        let server = server.buffered_with(Preallocated::new(2000));
        server.set_read_timeout(Some(PATIENCE))?;
        server.set_nodelay(true)?;
        let tls = ServerConnection::new(server_config.clone())?;
        let transport = server.detach();
        let session = Session { tls, transport };
        to_shards
            .send(session)
            .await
            .map_err(|error| error.to_string())?;
        let client = client(stream, client_config.clone(), number, counts.clone());
        clients.push(spawn_local(client));
    }
    drop(to_shards);
    for client in clients {
        client.await?;
    }
    Ok(())
}

/// Sends until all have moved often enough, and compares what comes back.
async fn client(
    stream: TcpStream,
    config: Arc<ClientConfig>,
    number: usize,
    counts: Arc<Counts>,
) -> Result {
    let connector = TlsConnector::from(config);
    let stream = connector
        .connect(ServerName::try_from("localhost")?, stream)
        .await?;
    let (mut reader, mut writer) = io::split(stream);
    let window = Semaphore::new(WINDOW);
    let byte_at = |position: usize| ((position + number).wrapping_mul(0x9E37_79B1) >> 24) as u8;
    let send = async {
        let mut sent = 0;
        while counts.moves.load(Ordering::Relaxed) < MOVES {
            let size = 1 + (sent * 7 + number * 131) % 5000;
            window.acquire(size as u64).await.map_err(io::Error::from)?;
            let piece: Vec<u8> = (sent..sent + size).map(byte_at).collect();
            writer.write_all(&piece).await?;
            writer.flush().await?;
            sent += size;
        }
        writer.close().await?;
        Ok::<_, io::Error>(sent)
    };
    let receive = async {
        let mut received = 0;
        let mut bytes = vec![0; 4096];
        loop {
            let count = reader.read(&mut bytes).await?;
            for (position, &byte) in (received..).zip(&bytes[..count]) {
                assert_eq!(byte, byte_at(position), "byte {position} of {number}");
            }
            if count == 0 {
                return Ok(received);
            }
            received += count;
            window.signal(count as u64);
        }
    };
    let (sent, received) = try_zip(send, receive).await?;
    assert_eq!(sent, received, "of connection {number}");
    Ok(())
}

/// Serves connections that come by either channel, until all have ended.
async fn shard(
    accepted: Option<SharedReceiver<Session>>,
    inbox: SharedReceiver<Session>,
    next: SharedSender<Session>,
    counts: Arc<Counts>,
) -> Result {
    let connecting = spawn_local(next.connect());
    let inbox = inbox.connect().await;
    let next = Rc::new(connecting.await);
    let mut serving = Vec::new();
    if let Some(accepted) = accepted {
        let accepted = accepted.connect().await;
        while let Some(session) = accepted.recv().await {
            serving.push(spawn_local(serve(session, next.clone(), counts.clone())));
        }
    }
    while let Some(session) = inbox.recv().await {
        serving.push(spawn_local(serve(session, next.clone(), counts.clone())));
        if serving.len() > 4 * CONNECTIONS {
            for task in serving.drain(..CONNECTIONS) {
                task.await?;
            }
        }
    }
    for task in serving {
        task.await?;
    }
    Ok(())
}

/// Echoes a part of what comes, and hands the connection on.
async fn serve(
    session: Session,
    next: Rc<ConnectedSender<Session>>,
    counts: Arc<Counts>,
) -> Result {
    let Session { mut tls, transport } = session;
    let mut stream = transport.attach();
    assert_eq!(stream.read_timeout(), Some(PATIENCE));
    assert!(stream.nodelay()?);
    let Some(plain) = receive(&mut tls, &mut stream).await? else {
        tls.send_close_notify();
        flush(&mut tls, &mut stream).await?;
        if counts.ended.fetch_add(1, Ordering::AcqRel) + 1 == CONNECTIONS {
            next.close();
        }
        return Ok(());
    };
    std::io::Write::write_all(&mut tls.writer(), &plain)?;
    flush(&mut tls, &mut stream).await?;
    let transport = stream.detach();
    if !transport.unread().is_empty() {
        counts
            .moves_with_unread_bytes
            .fetch_add(1, Ordering::Relaxed);
    }
    counts.moves.fetch_add(1, Ordering::Relaxed);
    let sent = next.send(Session { tls, transport }).await;
    sent.map_err(|error| error.to_string().into())
}

/// What the peer has sent next; none at the end.
async fn receive(
    tls: &mut ServerConnection,
    stream: &mut TcpStream<Preallocated>,
) -> Result<Option<Vec<u8>>> {
    let mut plain = vec![0; 4096];
    loop {
        match tls.reader().read(&mut plain) {
            Ok(0) => return Ok(None),
            Ok(count) => {
                plain.truncate(count);
                return Ok(Some(plain));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        let received = stream.fill_buf().await?;
        let mut some = &received[..received.len().min(700)];
        let count = tls.read_tls(&mut some)?;
        stream.consume(count);
        tls.process_new_packets()?;
        flush(tls, stream).await?;
    }
}

async fn flush(tls: &mut ServerConnection, stream: &mut TcpStream<Preallocated>) -> Result {
    while tls.wants_write() {
        let mut records = Vec::new();
        tls.write_tls(&mut records)?;
        stream.write_all(&records).await?;
    }
    Ok(())
}
