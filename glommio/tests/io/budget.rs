//! What is served at once takes part in the cooperative budget of the task.

use std::io::{Write, pipe};

use futures_lite::AsyncRead;
use glommio::consume_budget;
use glommio::io::{PollState, PollableFd};

use super::*;

/// Returns when the slice of the running task is over.
fn compute_until_preempted() {
    spin_until_preempted();
}

/// How often the poll under way has leave to go on, with its slice over.
fn leaves_left(cx: &mut Context<'_>) -> usize {
    let mut leave = || pin!(consume_budget()).poll(cx).is_ready();
    (0..100).take_while(|_| leave()).count()
}

/// Polls with `poll` when its task has no leave any more, which is to be pending and to wake.
pub(super) async fn is_refused<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) {
    poll_fn(|cx| {
        compute_until_preempted();
        leaves_left(cx);
        let (waker, woken) = counting();
        let is_pending = poll(&mut Context::from_waker(&waker)).is_pending();
        assert!(is_pending && woken.get() == 1, "it was not refused");
        Poll::Ready(())
    })
    .await;
    yield_now().await;
}

#[run_test(in_place)]
async fn a_read_from_the_page_cache_is_refused_when_the_budget_is_spent(path: PathBuf) {
    filled(&path, 8192);
    let file = BufferedFile::open(&path).await?;
    assert_eq!(file.read_at(0, 4096).await?.len(), 4096);
    executor().io_stats();
    let mut read = pin!(file.read_at(0, 4096));
    is_refused(|cx| read.as_mut().poll(cx)).await;
    let read_so_far = executor().io_stats().all_rings().file_buffered_reads();
    assert_eq!(read_so_far, (0, 0), "refused before it began");
    assert_eq!(*read.await?, pattern(0, 4096));

    let file = BufferedFile::open(&path).await?;
    let mut reader = StreamReaderBuilder::new(file).build();
    let mut bytes = [0; 100];
    is_refused(|cx| Pin::new(&mut reader).poll_read(cx, &mut bytes)).await;
    let count = poll_fn(|cx| Pin::new(&mut reader).poll_read(cx, &mut bytes)).await?;
    assert_eq!(bytes[..count], pattern(0, count));
    reader.close().await
}

#[run_test(in_place)]
async fn a_read_from_the_page_cache_is_taken_from_the_budget(path: PathBuf) {
    filled(&path, 8192);
    let file = BufferedFile::open(&path).await?;
    // The slice of the first poll may be over before they are done.
    for _ in 0..100 {
        let left = poll_fn(|cx| {
            let mut read = || pin!(file.read_at(0, 4096)).poll(cx).is_ready();
            let all_at_once = (0..10).all(|_| read());
            compute_until_preempted();
            let left = leaves_left(cx);
            Poll::Ready(all_at_once.then_some(left))
        });
        if let Some(left) = left.await {
            assert_eq!(left, 22);
            return file.close().await;
        }
        yield_now().await;
    }
    skipped("this filesystem has no reads of the page cache alone");
    file.close().await
}

#[run_test]
async fn readiness_is_refused_when_the_budget_is_spent_and_found_later() {
    let (reader, mut writer) = pipe()?;
    writer.write_all(b"x")?;
    let reader = PollableFd::new(reader)?;
    let mut state = PollState::new();
    is_refused(|cx| reader.poll_readable(cx, &mut state)).await;
    poll_fn(|cx| reader.poll_readable(cx, &mut state)).await?;
    // With a wait under way, which is not lost.
    let first = poll_fn(|cx| Poll::Ready(reader.poll_readable(cx, &mut state)));
    assert!(first.await.is_pending());
    is_refused(|cx| reader.poll_readable(cx, &mut state)).await;
    poll_fn(|cx| reader.poll_readable(cx, &mut state)).await
}
