//! Read and write timeouts of sockets, each against a peer in the same executor that keeps silent.
//!
//! Three conversations side by side. Reads: the peer speaks before the timeout, after it, or not at
//! all. Abandoned reads: a wait given up by `timer::timeout` may not shorten another task's.
//! Writes: the peer does not read, so the socket fills up; then it reads, and every byte must be
//! there.

use glommio::timer::timeout;

use crate::workload::ping::pair;
use crate::workload::prelude::*;

/// Runs the conversations until the run drains.
pub(crate) async fn run(checker: Rc<Checker>, seed: u64) {
    let own = || Rc::clone(&checker);
    let conversations = [
        spawn_local(reads(own(), stream(seed, 1))),
        spawn_local(abandoned_reads(own(), stream(seed, 2))),
        spawn_local(writes(own(), stream(seed, 3))),
    ];
    let names = ["socket reads", "abandoned reads", "socket writes"];
    for (what, conversation) in names.into_iter().zip(conversations) {
        checker.ended(Invariant::Deliveries, what, conversation.await);
    }
}

/// Enters a timeout of a socket: it may not come before its time.
pub(crate) fn judge_timeout(checker: &Checker, began: Instant, timeout: Duration) {
    let early = nanos(timeout.saturating_sub(clock::since(began)));
    checker.check(Invariant::SocketTimeouts, early, || {
        format!("a timeout of {timeout:?} came {early} ns early")
    });
}

async fn reads(checker: Rc<Checker>, mut rng: Rng) -> io::Result<()> {
    let (mut near, mut far) = pair().await?;
    while !checker.control.is_draining() {
        let limit = rng.log_uniform(Duration::from_millis(5), Duration::from_millis(300));
        near.set_read_timeout(Some(limit))?;
        if rng.chance(1, 3) {
            let spoken = rng.u64(..) as u8;
            let speaks_after = rng.percent_of(limit, 10, 150);
            let speaks = async {
                sleep(speaks_after).await;
                far.write_all(&[spoken]).await
            };
            let (heard, ended) = zip(read_byte(&checker, &mut near, limit), speaks).await;
            ended?;
            let heard = heard?;
            checker.holds(Invariant::SocketTimeouts, heard == spoken, || {
                format!("{spoken} was written and {heard} was read")
            });
        } else {
            let began = clock::now();
            expect_silence(&checker, &mut near, limit, began).await?;
            checker
                .stats
                .record(Timing::Lateness, began + limit, clock::now());
        }
    }
    Ok(())
}

/// Reads one byte, which is written within two timeouts, however many it takes on a slow machine.
async fn read_byte(checker: &Checker, stream: &mut TcpStream, limit: Duration) -> io::Result<u8> {
    let mut byte = [0];
    let (asked, mut timeouts) = (clock::now(), 0);
    loop {
        let began = clock::now();
        match stream.read(&mut byte).await {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => return Ok(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                judge_timeout(checker, began, limit);
                timeouts += 1;
                // Neither a process that stands still for long nor short timeouts alone mean
                // anything.
                if timeouts > TIMEOUTS_MAX && clock::since(asked) > checker.control.patience() * 2 {
                    checker.holds(Invariant::SocketTimeouts, false, || {
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
    checker: &Checker,
    stream: &mut TcpStream,
    limit: Duration,
    began: Instant,
) -> io::Result<()> {
    match stream.read(&mut [0]).await {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            judge_timeout(checker, began, limit);
            Ok(())
        }
        Ok(bytes) => Err(io::Error::other(format!(
            "{bytes} bytes came from a silent peer"
        ))),
        Err(error) => Err(error),
    }
}

async fn abandoned_reads(checker: Rc<Checker>, mut rng: Rng) -> io::Result<()> {
    let (mut near, _far) = pair().await?;
    while !checker.control.is_draining() {
        let limit = rng.log_uniform(Duration::from_millis(10), Duration::from_millis(200));
        near.set_read_timeout(Some(limit))?;
        let patience = rng.percent_of(limit, 10, 90);
        let began = clock::now();
        let given_up = timeout(patience, async { Ok(near.read(&mut [0]).await?) }).await;
        let is_ours = matches!(given_up, Err(GlommioError::TimedOut(after)) if after == patience);
        // On a machine that stops for a while the socket's own timeout may be the first to be seen.
        let is_sockets = clock::since(began) >= limit;
        checker.holds(Invariant::SocketTimeouts, is_ours || is_sockets, || {
            format!("a read limited to {patience:?} ended with {given_up:?}")
        });
        judge_timeout(&checker, began, patience);
        sleep(rng.percent_of(limit, 0, 120)).await;
        if rng.chance(1, 2) {
            // Another task's wait is a new one, whatever became of the wait before.
            let checker = Rc::clone(&checker);
            let reads_on = spawn_local(async move {
                let ended = expect_silence(&checker, &mut near, limit, clock::now()).await;
                ended.map(|()| near)
            });
            near = reads_on.await?;
        } else {
            // The same task may be taken to have waited all the time, but for no longer.
            expect_silence(&checker, &mut near, limit, began).await?;
        }
    }
    Ok(())
}

async fn writes(checker: Rc<Checker>, mut rng: Rng) -> io::Result<()> {
    let (mut near, mut far) = pair().await?;
    let block = vec![0x5A; WRITE_BYTES];
    let mut drain = vec![0; WRITE_BYTES];
    while !checker.control.is_draining() {
        let limit = rng.log_uniform(Duration::from_millis(5), Duration::from_millis(300));
        near.set_write_timeout(Some(limit))?;
        let mut written: usize = 0;
        loop {
            let began = clock::now();
            match near.write(&block).await {
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    judge_timeout(&checker, began, limit);
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
        checker.check(
            Invariant::SocketTimeouts,
            read.abs_diff(written) as u64,
            || format!("{written} bytes were written and {read} were read"),
        );
        sleep(WRITE_PAUSE).await;
    }
    Ok(())
}

/// Before a byte counts as lost.
const TIMEOUTS_MAX: u32 = 8;

const WRITE_BYTES: usize = 64 * 1_024;

/// A full loopback socket is several megabytes to copy; that is not what is soaked here.
const WRITE_PAUSE: Duration = Duration::from_millis(400);
