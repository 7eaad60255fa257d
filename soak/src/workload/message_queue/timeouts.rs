//! Read and write timeouts of sockets, each against a peer in the same executor that keeps silent.
//!
//! Three conversations side by side. Reads: the peer speaks before the timeout, after it, or not at
//! all. Abandoned reads: a wait given up by `timer::timeout` may not shorten another task's. Writes: the
//! peer does not read, so the socket fills up; then it reads, and every byte must be there.

use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_lite::future::zip;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::net::{TcpListener, TcpStream};
use glommio::timer::{sleep, timeout};
use glommio::{GlommioError, spawn_local};

use super::link::{judge_end, judge_timeout};
use crate::check::invariants::Invariant;
use crate::check::probe::Timing;
use crate::check::watch::Watch;
use crate::rng::{Draw, Rng, stream};

/// Runs the conversations until the run drains.
pub(crate) async fn run(watch: Rc<Watch>, seed: u64) {
    let conversations = [
        judged(
            &watch,
            "socket reads",
            reads(Rc::clone(&watch), stream(seed, 1)),
        ),
        judged(
            &watch,
            "abandoned reads",
            abandoned_reads(Rc::clone(&watch), stream(seed, 2)),
        ),
        judged(
            &watch,
            "socket writes",
            writes(Rc::clone(&watch), stream(seed, 3)),
        ),
    ];
    for conversation in conversations {
        conversation.await;
    }
}

fn judged(
    watch: &Rc<Watch>,
    what: &'static str,
    conversation: impl Future<Output = io::Result<()>> + 'static,
) -> glommio::Task<()> {
    let watch = Rc::clone(watch);
    spawn_local(async move { judge_end(&watch, what, conversation.await) })
}

async fn reads(watch: Rc<Watch>, mut rng: Rng) -> io::Result<()> {
    let (mut near, mut far) = pair().await?;
    while !watch.control.is_draining() {
        let limit = rng.log_uniform(Duration::from_millis(5), Duration::from_millis(300));
        near.set_read_timeout(Some(limit))?;
        if rng.chance(1, 3) {
            let spoken = rng.u64(..) as u8;
            let speaks_after = rng.percent_of(limit, 10, 150);
            let speaks = async {
                sleep(speaks_after).await;
                far.write_all(&[spoken]).await
            };
            let (heard, ended) = zip(read_byte(&watch, &mut near, limit), speaks).await;
            ended?;
            let heard = heard?;
            watch
                .station
                .ledger
                .holds(Invariant::SocketTimeouts, heard == spoken, || {
                    format!("{spoken} was written and {heard} was read")
                });
        } else {
            let began = Instant::now();
            expect_silence(&watch, &mut near, limit, began).await?;
            watch
                .station
                .record(Timing::Lateness, began + limit, Instant::now());
        }
    }
    Ok(())
}

/// Reads one byte, which is written within two timeouts, however many it takes on a slow machine.
async fn read_byte(watch: &Watch, stream: &mut TcpStream, limit: Duration) -> io::Result<u8> {
    let mut byte = [0];
    let (asked, mut timeouts) = (Instant::now(), 0);
    loop {
        let began = Instant::now();
        match stream.read(&mut byte).await {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => return Ok(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                judge_timeout(watch, began, limit);
                timeouts += 1;
                // Neither a process that stands still for long nor short timeouts alone mean anything.
                if timeouts > TIMEOUTS_MAX && asked.elapsed() > watch.control.patience() * 2 {
                    let ledger = &watch.station.ledger;
                    ledger.holds(Invariant::SocketTimeouts, false, || {
                        "a byte that was written beside timeouts never came".to_owned()
                    });
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// No data comes: the read must time out, and not before `limit` has passed since `began`.
async fn expect_silence(
    watch: &Watch,
    stream: &mut TcpStream,
    limit: Duration,
    began: Instant,
) -> io::Result<()> {
    match stream.read(&mut [0]).await {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            judge_timeout(watch, began, limit);
            Ok(())
        }
        Ok(bytes) => Err(io::Error::other(format!(
            "{bytes} bytes came from a silent peer"
        ))),
        Err(error) => Err(error),
    }
}

async fn abandoned_reads(watch: Rc<Watch>, mut rng: Rng) -> io::Result<()> {
    let (mut near, _far) = pair().await?;
    while !watch.control.is_draining() {
        let limit = rng.log_uniform(Duration::from_millis(10), Duration::from_millis(200));
        near.set_read_timeout(Some(limit))?;
        let patience = rng.percent_of(limit, 10, 90);
        let began = Instant::now();
        let given_up = timeout(patience, async { Ok(near.read(&mut [0]).await?) }).await;
        let is_ours = matches!(given_up, Err(GlommioError::TimedOut(after)) if after == patience);
        // On a machine that stops for a while the socket's own timeout may be the first to be seen.
        let is_sockets = began.elapsed() >= limit;
        watch
            .station
            .ledger
            .holds(Invariant::SocketTimeouts, is_ours || is_sockets, || {
                format!("a read limited to {patience:?} ended with {given_up:?}")
            });
        judge_timeout(&watch, began, patience);
        sleep(rng.percent_of(limit, 0, 120)).await;
        if rng.chance(1, 2) {
            // Another task's wait is a new one, whatever became of the wait before.
            let watch = Rc::clone(&watch);
            let reads_on = spawn_local(async move {
                let ended = expect_silence(&watch, &mut near, limit, Instant::now()).await;
                ended.map(|()| near)
            });
            near = reads_on.await?;
        } else {
            // The same task may be taken to have waited all the time, but for no longer.
            expect_silence(&watch, &mut near, limit, began).await?;
        }
    }
    Ok(())
}

async fn writes(watch: Rc<Watch>, mut rng: Rng) -> io::Result<()> {
    let (mut near, mut far) = pair().await?;
    let block = vec![0x5A; WRITE_BYTES];
    let mut drain = vec![0; WRITE_BYTES];
    while !watch.control.is_draining() {
        let limit = rng.log_uniform(Duration::from_millis(5), Duration::from_millis(300));
        near.set_write_timeout(Some(limit))?;
        let mut written: usize = 0;
        loop {
            let began = Instant::now();
            match near.write(&block).await {
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    judge_timeout(&watch, began, limit);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        let mut read = 0;
        while read < written {
            match far.read(&mut drain).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                bytes => read += bytes,
            }
        }
        watch.station.ledger.check(
            Invariant::SocketTimeouts,
            read.abs_diff(written) as u64,
            || format!("{written} bytes were written and {read} were read"),
        );
        sleep(WRITE_PAUSE).await;
    }
    Ok(())
}

/// Two connected sockets of this executor.
async fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (near, far) = zip(TcpStream::connect(address), listener.accept()).await;
    Ok((near?, far?))
}

/// Before a byte counts as lost.
const TIMEOUTS_MAX: u32 = 8;

const WRITE_BYTES: usize = 64 * 1_024;

/// A full loopback socket is several megabytes to copy; that is not what is soaked here.
const WRITE_PAUSE: Duration = Duration::from_millis(400);
