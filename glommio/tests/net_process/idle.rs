//! Many connections that do nothing: what they cost.

use super::clients::in_child_with_clients;
use super::*;
use crate::common::{Kept, voluntary_switches};

const CONNECTIONS: usize = 10_000;

/// Ten thousand reads wait, each with its timeout: the thread sleeps all the while. All are
/// answered then, and nothing is left of them in the end.
#[run_test(alone)]
fn ten_thousand_idle_connections_cost_nothing_and_answer_when_asked() {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("every process has a limit");
    // For the connections, one end in each process, and whatever else is open.
    if hard < CONNECTIONS as u64 + 200 {
        println!("skipped: the hard limit of {hard} descriptors is too low");
        return;
    }
    set_limit(Resource::RLIMIT_NOFILE, hard);
    in_child_with_clients(|clients| {
        run(async {
            let mut clients = clients.bind_to_executor();
            let before = open_descriptors();
            let mut streams = all_connect_and_answer(&mut clients).await?;
            none_of_their_reads_leaves_a_timer(&mut streams).await;
            drop(streams);
            clients.close().await?;
            back_to(before).await;
            sleeps_through(Duration::from_secs(1)).await;
            Ok(())
        });
    });
    set_limit(Resource::RLIMIT_NOFILE, soft);
}

async fn all_connect_and_answer(clients: &mut clients::Clients) -> Result<Vec<TcpStream>> {
    // Fewer at a time than may wait to be accepted.
    const BATCH: usize = 500;
    let (listener, address) = bound()?;
    let mut readers = Vec::new();
    for _ in 0..CONNECTIONS / BATCH {
        clients.connect(address, BATCH).await?;
        for _ in 0..BATCH {
            let mut stream = listener.accept().await?;
            readers.push(spawn_local(async move {
                stream.set_read_timeout(Some(PATIENCE * 2))?;
                stream.read_exact(&mut [0; 4]).await?;
                let mut question = [0];
                stream.read_exact(&mut question).await?;
                stream.write_all(&question).await?;
                Result::Ok(stream)
            }));
        }
    }
    // Longer than it takes all of them to find nothing to read.
    sleep(Duration::from_millis(100)).await;
    sleeps_through(Duration::from_secs(2)).await;
    clients.ask().await?;
    let mut streams = Vec::new();
    for reader in readers {
        streams.push(reader.await?);
    }
    Ok(streams)
}

/// The thread wakes up once, at the end. A few tries, for a machine on which others make it wake.
async fn sleeps_through(time: Duration) {
    let mut least = (Duration::MAX, u64::MAX);
    for _ in 0..3 {
        let (cpu, switches) = (thread_cpu(), voluntary_switches());
        sleep(time).await;
        let used = (thread_cpu() - cpu, voluntary_switches() - switches);
        least = (least.0.min(used.0), least.1.min(used.1));
        if least.0 < Duration::from_millis(20) && least.1 <= 3 {
            return;
        }
    }
    panic!("{time:?} of sleep cost {least:?} of CPU time and switches");
}

/// The waker of a waiting task is kept by the socket, its timer and what is in flight; by none of
/// them once the socket is dropped.
async fn none_of_their_reads_leaves_a_timer(streams: &mut Vec<TcpStream>) {
    let kept = Arc::new(Kept);
    for stream in &mut *streams {
        let waker = Waker::from(Arc::clone(&kept));
        let mut byte = [0];
        let read = std::pin::pin!(stream.read(&mut byte));
        assert!(read.poll(&mut Context::from_waker(&waker)).is_pending());
    }
    sleep(Duration::from_millis(1)).await;
    assert!(Arc::strong_count(&kept) > CONNECTIONS);
    streams.clear();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(Arc::strong_count(&kept), 1);
}
