//! A seed does the same first, last and alone, next to others on other threads, and in another process.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::AtomicU64;

use glommio::select;
use glommio::simulation::{self, Simulation};

use super::{MILLISECOND, SECOND};
use crate::common::prelude::*;

/// How many; the environment may have another number.
fn seeds() -> u64 {
    let text = std::env::var("GLOMMIO_SEEDS").ok();
    text.map_or(6, |it| it.parse().expect("a number"))
}

/// Answers over TCP, tells over UDP, keeps a file, makes calls that block.
async fn serve(log: Log<String>) -> io::Result<()> {
    log.push(format!("{} {}", executor().id(), simulation::starts()));
    let file = BufferedFile::create(format!("/data{}", executor().id())).await?;
    Directory::open("/").await?.sync().await?;
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let Ok(listener) = TcpListener::bind("0.0.0.0:7000") else {
        return Ok(());
    };
    let mut position = 0;
    loop {
        let mut stream = select! {
            stream = listener.accept() => stream?,
            () = sleep(20 * MILLISECOND) => {
                let _ = socket.send_to(b"nothing", "other:7001").await;
                continue;
            }
        };
        let mut buffer = vec![0; 64];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            let bytes = buffer[..count].to_vec();
            let bytes = executor().spawn_blocking(move || bytes).await;
            position += file.write_at(bytes.clone(), position).await? as u64;
            let _ = file.fdatasync().await;
            let _ = stream.write_all(&bytes).await;
        }
    }
}

async fn ask(log: Log<String>) -> io::Result<()> {
    let mut rng = fastrand::Rng::with_seed(glommio::rng_seed());
    let log_in_task = log.clone();
    let heard = spawn_local(async move {
        let socket = UdpSocket::bind("0.0.0.0:7001")?;
        let mut buffer = [0; 16];
        loop {
            let (count, from) = socket.recv_from(&mut buffer).await?;
            log_in_task.push(format!("{count} from {from}"));
        }
        #[allow(unreachable_code, reason = "it has a type")]
        io::Result::Ok(())
    });
    for round in 0..30 {
        let text = vec![rng.u8(..); rng.usize(1..64)];
        let attempt = async {
            let mut stream = TcpStream::connect_timeout("server:7000", SECOND).await?;
            stream.set_read_timeout(Some(SECOND))?;
            stream.write_all(&text).await?;
            let mut answer = vec![0; text.len()];
            stream.read_exact(&mut answer).await?;
            io::Result::Ok(())
        };
        let answer = attempt.await.map_err(|error| error.to_string());
        log.push(format!(
            "{round}: {answer:?} at {:?}",
            simulation::elapsed()
        ));
    }
    heard.cancel().await;
    Ok(())
}

/// A number of all that was seen.
fn run(seed: u64) -> u64 {
    let log = Log::default();
    let (of_server, of_client) = (log.clone(), log.clone());
    let report = Simulation::builder()
        .seed(seed)
        .random_task_order(seed % 2 == 1)
        .network(|it| {
            let latency = MILLISECOND / 10..5 * MILLISECOND;
            it.latency(latency).loss(0.02).duplicate(0.02).reorder(0.02)
        })
        .disk(|it| it.lost_unsynced(true).torn_writes(true).short(0.1))
        .node("server", 2, move || serve(of_server.clone()))
        .client("other", move || ask(of_client.clone()))
        .restarts("server", SECOND / 10..2 * SECOND, MILLISECOND..SECOND / 2)
        .run();
    let mut hasher = DefaultHasher::new();
    match report {
        Ok(report) => (report.digest(), report.events(), report.elapsed()).hash(&mut hasher),
        Err(failure) => failure.to_string().hash(&mut hasher),
    }
    log.take().hash(&mut hasher);
    hasher.finish()
}

/// The same of all seeds, which so many threads take one after the other.
fn on_threads(threads: usize) -> Vec<u64> {
    let next = AtomicU64::new(0);
    let seen = Mutex::new(vec![0; seeds() as usize]);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds() {
                        break;
                    }
                    let digest = run(seed);
                    seen.lock().unwrap()[seed as usize] = digest;
                }
            });
        }
    });
    seen.into_inner().unwrap()
}

#[run_test]
fn a_seed_does_the_same_first_last_alone_and_next_to_others() {
    let alone: Vec<_> = (0..seeds())
        .map(|seed| thread::spawn(move || run(seed)).join().unwrap())
        .collect();
    let distinct: BTreeSet<_> = alone.iter().collect();
    assert_eq!(distinct.len(), alone.len(), "each seed does something else");
    let forwards: Vec<_> = (0..seeds()).map(run).collect();
    assert_eq!(forwards, alone, "one after the other");
    let mut backwards: Vec<_> = (0..seeds()).rev().map(run).collect();
    backwards.reverse();
    assert_eq!(backwards, alone, "the last one first");
    for threads in [1, 2, 8] {
        assert_eq!(on_threads(threads), alone, "with {threads} threads");
    }
}

#[test]
fn a_seed_does_the_same_in_another_process() {
    const HERE: &str = "GLOMMIO_DIGESTS";
    let here = format!("{:?}", on_threads(2));
    in_child_with(&[(HERE, &here)], || {
        assert_eq!(std::env::var(HERE).as_ref(), Ok(&here))
    });
}
