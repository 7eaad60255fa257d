//! `DmaStreamWriter`: flushes beside writers, and what is in the file when it is given up.

use glommio::io::DmaStreamWriter;

use super::*;
use crate::common::log::{Heard, hearing_so_far};
use crate::common::run as run_plain;

type Boxed<T> = Pin<Box<dyn Future<Output = T>>>;

async fn writer(path: &Path) -> Result<DmaStreamWriter> {
    let file = DmaFile::create(path).await?;
    Ok(DmaStreamWriterBuilder::new(file)
        .with_buffer_size(4096)
        .build())
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).expect("it is there").len()
}

/// More than all buffers of a writer hold: what a flush that starves lets pass.
const STARVED: u64 = 16 << 20;

/// Writes until `stops`, or up to `end`, which shows that a flush starves.
async fn write_without_end(
    writer: &DmaStreamWriter,
    stops: &Cell<bool>,
    end: u64,
) -> io::Result<()> {
    let mut writer = writer;
    while !stops.get() && writer.current_pos() < end {
        writer.write_all(&[7; 1000]).await?;
    }
    Ok(())
}

/// What was accepted from the first poll of a flush that waits until its end; none if nothing was
/// written up to `end` but what other flushes brought.
async fn accepted_beside_a_flush(writer: &DmaStreamWriter, end: u64) -> Result<Option<u64>> {
    loop {
        let mut shared = writer;
        let mut flush = shared.flush();
        let at_once = poll_once(&mut flush).await;
        let begun_at = writer.current_pos();
        if let Some(flushed) = at_once {
            // Nothing was to be written yet.
            flushed?;
            if begun_at >= end {
                return Ok(None);
            }
            executor().yield_task_queue_now().await;
            continue;
        }
        flush.await?;
        assert!(writer.current_flushed_pos() >= begun_at);
        return Ok(Some(writer.current_pos() - begun_at));
    }
}

/// Whether so many flushes in turn, from tasks of `queue`, each end beside `writers` tasks that
/// write without end, with no more than `most` bytes accepted meanwhile.
async fn flushes_end(
    writer: &Rc<DmaStreamWriter>,
    writers: usize,
    flushes: usize,
    queue: TaskQueueHandle,
    most: u64,
) -> Result<bool> {
    let end = writer.current_pos() + STARVED;
    let stops = Rc::new(Cell::new(false));
    let tasks: Vec<_> = (0..writers)
        .map(|_| {
            let (writer, stops) = (Rc::clone(writer), Rc::clone(&stops));
            spawn_local(async move { write_without_end(&writer, &stops, end).await })
        })
        .collect();
    executor().yield_task_queue_now().await;
    let other = Rc::clone(writer);
    let flushes = async move {
        for _ in 0..flushes {
            match accepted_beside_a_flush(&other, end).await? {
                Some(accepted) if accepted <= most => (),
                _ => return Result::Ok(false),
            }
        }
        Ok(true)
    };
    let ended = spawn_in(queue, flushes).await?;
    stops.set(true);
    for task in tasks {
        task.await?;
    }
    Ok(ended)
}

#[run_test(in_each_place)]
async fn a_flush_ends_though_other_tasks_write_without_end(path: PathBuf) {
    let slow = executor().create_task_queue(Shares::Static(1), Latency::NotImportant, "slow");
    let own = executor().current_task_queue();
    for writers in [1, 3] {
        for (flushes, queue, most) in [(20, own, 100_000), (5, slow, 1 << 20)] {
            let writer = Rc::new(writer(&path).await?);
            let end = flushes_end(&writer, writers, flushes, queue, most).await?;
            assert!(end, "flushes starve beside {writers} writers");
            (&*writer).close().await?;
        }
    }
}

/// A task that flushes has its turn long after its flush has ended, in which others write: its queue has few
/// shares, and the others compute, or the machine stands still.
#[run_test(in_each_folder)]
async fn a_flush_ends_in_a_queue_of_few_shares_though_others_compute(folder: TempDir) {
    let few = executor().create_task_queue(Shares::Static(1), Latency::NotImportant, "few");
    let many = executor().create_task_queue(Shares::Static(1000), Latency::NotImportant, "many");
    let writer = Rc::new(writer(&folder.path().join("file")).await?);
    let stops = Rc::new(Cell::new(false));
    let stop = Rc::clone(&stops);
    let computes = async move {
        while !stop.get() {
            std::thread::sleep(Duration::from_millis(2));
            executor().yield_task_queue_now().await;
        }
    };
    let computes = spawn_in(many, computes);
    let shared = Rc::clone(&writer);
    let flushes = async move { flushes_end(&shared, 2, 5, few, 100_000).await };
    let flushes = spawn_in(many, flushes);
    assert!(flushes.await?, "flushes starve");
    stops.set(true);
    computes.await;
    (&*writer).close().await?;
}

/// In whatever order they are polled.
#[run_test(in_each_place)]
async fn a_flush_ends_beside_writes_of_the_same_task(path: PathBuf) {
    for is_first in [true, false] {
        let writer = writer(&path).await?;
        (&writer).write_all(&[1; 1000]).await?;
        let stops = Cell::new(false);
        let flush = async {
            let accepted = accepted_beside_a_flush(&writer, STARVED).await;
            stops.set(true);
            accepted
        };
        let writes = write_without_end(&writer, &stops, STARVED);
        let (flushed, wrote) = if is_first {
            zip(flush, writes).await
        } else {
            let (wrote, flushed) = zip(writes, flush).await;
            (flushed, wrote)
        };
        wrote?;
        let accepted = flushed?.expect("nothing else flushes");
        assert!(accepted <= 100_000, "{accepted} bytes beside one flush");
        (&writer).close().await?;
    }
}

/// Where its slice is over, a task whose writes come first in each poll has no budget left for its
/// flush. The flush begins all the same.
#[run_test(in_each_folder)]
async fn a_flush_begins_behind_writes_that_use_up_the_budget(folder: TempDir) {
    let writer = writer(&folder.path().join("file")).await?;
    while !executor().need_preempt() {}
    let mut shared = &writer;
    let mut accepted = 0;
    // More than the budget, and fewer than a buffer holds.
    while accepted < 4000
        && let Some(written) = poll_once(shared.write(&[7])).await
    {
        accepted += written?;
    }
    assert!(
        (1..4000).contains(&accepted),
        "{accepted} bytes in one poll"
    );
    let mut flush = shared.flush();
    assert!(poll_once(&mut flush).await.is_none());
    executor().yield_task_queue_now().await;
    let mut shared = &writer;
    assert!(
        poll_once(shared.write(&[7])).await.is_none(),
        "a write comes before the flush"
    );
    flush.await?;
    assert_eq!(writer.current_flushed_pos(), accepted as u64);
    (&writer).close().await?;
}

/// Writes wait for a task that flushes to see the end of its flush, for a millisecond. That they may
/// go on is first noticed by the task itself, or in `current_flushed_pos`.
#[run_test(in_each_place)]
async fn writes_go_on_when_a_flush_is_looked_after_late(path: PathBuf) {
    for looks_at_position in [false, true] {
        let writer = Rc::new(writer(&path).await?);
        (&*writer).write_all(&[1; 100]).await?;
        let mut shared = &*writer;
        let mut flush = shared.flush();
        assert!(poll_once(&mut flush).await.is_none());
        let other = Rc::clone(&writer);
        let waits = spawn_local(async move { (&*other).write_all(&[2; 100]).await });
        while writer.current_flushed_pos() < 100 {
            executor().yield_task_queue_now().await;
        }
        executor().yield_task_queue_now().await;
        std::thread::sleep(Duration::from_millis(3));
        if looks_at_position {
            assert!(writer.current_flushed_pos() >= 100);
        }
        flush.await?;
        waits.await?;
        (&*writer).close().await?;
    }
}

/// None of these keeps the writes waiting.
#[run_test(in_each_place)]
async fn flushes_that_are_given_up_keep_no_writer_waiting(path: PathBuf) {
    let writer = Rc::new(writer(&path).await?);
    for round in 0..200_u64 {
        (&*writer).write_all(&[1; 100]).await?;
        let given_up = Rc::clone(&writer);
        let gives_up = async move {
            let mut shared = &*given_up;
            let mut flush = shared.flush();
            let _begun = poll_once(&mut flush).await;
            if round % 3 == 0 {
                // As long as it takes, and a while.
                let _ended = or(async { drop(poll_once(&mut flush).await) }, async {
                    sleep(Duration::from_micros(200)).await;
                })
                .await;
            }
        };
        match round % 2 {
            0 => gives_up.await,
            _ => spawn_local(gives_up).await,
        }
        // Of this task, of others, and with a flush that is not given up.
        (&*writer).write_all(&[2; 100]).await?;
        let other = Rc::clone(&writer);
        spawn_local(async move { (&*other).write_all(&[3; 100]).await }).await?;
        (&*writer).flush().await?;
        assert_eq!(writer.current_flushed_pos(), (round + 1) * 300);
    }
    (&*writer).close().await?;
}

/// An existing file: nothing was handed over, or all, or part of it.
#[run_test]
async fn a_flush_that_is_given_up_does_not_empty_the_file() {
    const LEN: usize = 1 << 20;
    for (_folder, path) in places(folders()) {
        for polls in 0..5 {
            filled(&path, LEN);
            let file = OpenOptions::new().write(true).dma_open(&path).await?;
            let mut writer = DmaStreamWriterBuilder::new(file).build();
            writer.write_all(&[1; 100]).await?;
            match polls {
                0 => {
                    assert!(poll_once(writer.flush()).await.is_none());
                    drop(writer);
                    assert!(
                        fs::read(&path)? == pattern(0, LEN),
                        "nothing was handed over"
                    );
                }
                4 => {
                    writer.flush().await?;
                    drop(writer);
                    assert_eq!(fs::read(&path)?[..100], [1; 100]);
                }
                _ => {
                    give_up(writer.flush(), polls).await;
                    drop(writer);
                    assert_eq!(size(&path), LEN as u64);
                    sleep(Duration::from_millis(5)).await;
                }
            }
            assert_eq!(size(&path), LEN as u64, "after {polls} polls");
        }
    }
}

/// A file that ends within what a flush fills.
#[run_test(in_each_place)]
async fn a_file_is_cut_where_it_ended_if_that_is_behind_what_was_flushed(path: PathBuf) {
    filled(&path, 6000);
    let file = OpenOptions::new().write(true).dma_open(&path).await?;
    let mut writer = DmaStreamWriterBuilder::new(file)
        .with_buffer_size(4096)
        .build();
    writer.write_all(&[1; 5000]).await?;
    writer.flush().await?;
    assert_eq!(size(&path), 8192);
    drop(writer);
    assert_eq!(size(&path), 6000);
    assert_eq!(fs::read(&path)?[..5000], [1; 5000]);
}

/// Also where the kernel was at it when the writer was dropped.
#[run_test(run_in_child)]
async fn padding_does_not_stay_when_a_flush_is_given_up_with_its_writer() {
    for (_folder, path) in places(folders()) {
        let before = descriptors();
        for round in 0..300 {
            let mut writer = writer(&path).await?;
            writer.write_all(&pattern(0, 5000)).await?;
            let mut flush = writer.flush();
            assert!(poll_once(&mut flush).await.is_none());
            match round % 3 {
                0 => executor().yield_task_queue_now().await,
                1 => sleep(Duration::from_micros(1)).await,
                _ => sleep(Duration::from_micros(50 + round)).await,
            }
            drop(writer);
            while descriptors() > before {
                sleep(Duration::from_micros(100)).await;
            }
            let left = size(&path);
            assert!([0, 4096, 5000].contains(&left), "{left} in round {round}");
        }
    }
}

#[run_test(in_each_folder)]
async fn padding_does_not_stay_when_a_seal_is_given_up(folder: TempDir) {
    let path = folder.path().join("sealed");
    let mut sink = ImmutableFileBuilder::new(&path)
        .with_buffer_size(4096)
        .build_sink()
        .await?;
    executor().io_stats();
    sink.write_all(&pattern(0, 5000)).await?;
    let mut seal: Boxed<Result<_>> = Box::pin(sink.seal());
    written(2, &mut seal).await;
    // All is flushed, and it is about to be cut: before Linux 6.9 by a thread, which may have done so.
    assert!(poll_once(&mut seal).await.is_none());
    assert!([5000, 8192].contains(&size(&path)));
    drop(seal);
    assert_eq!(fs::read(&path)?, pattern(0, 5000));
}

/// Whatever the close has come to.
#[run_test]
fn padding_does_not_stay_when_the_executor_ends_during_a_close() {
    for (_folder, path) in places(folders()) {
        for turns in 0..30 {
            for outlives in [false, true] {
                let executor = LocalExecutor::default();
                let left = executor.run(async {
                    let mut writer = writer(&path).await.expect("it is created");
                    writer
                        .write_all(&pattern(0, 5000))
                        .await
                        .expect("it is accepted");
                    assert!(poll_once(writer.close()).await.is_none());
                    for _ in 0..turns {
                        match turns % 2 {
                            0 => glommio::executor().yield_task_queue_now().await,
                            _ => sleep(Duration::from_micros(20)).await,
                        }
                    }
                    outlives.then_some(writer)
                });
                drop(executor);
                drop(left);
                let left = size(&path);
                assert!([0, 4096, 5000].contains(&left), "{left} after {turns}");
            }
        }
    }
}

/// Whether an error of a close in the background of the file at `path` was logged.
fn is_told(heard: &[Heard], path: &str) -> bool {
    heard.iter().any(|it| {
        it.level == tracing::Level::ERROR
            && it.message.contains("in the background failed")
            && it.message.contains(path)
    })
}

/// Waits until it is, but not for ever.
async fn told(so_far: &dyn Fn() -> Vec<Heard>, path: &str) {
    for _ in 0..10_000 {
        if is_told(&so_far(), path) {
            return;
        }
        sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn a_background_close_that_fails_is_logged_with_its_path() {
    const NULL: &str = "/dev/null";
    // It takes all and cannot be synced.
    let ((), heard) = hearing_so_far(|so_far| {
        run_plain(async {
            let file = OpenOptions::new().write(true).dma_open(NULL).await;
            let mut writer = DmaStreamWriterBuilder::new(file.expect("it is there"))
                .with_buffer_size(4096)
                .build();
            writer.write_all(&[1; 4096]).await.expect("it is accepted");
            assert!(poll_once(writer.close()).await.is_none());
            drop(writer);
            told(so_far, NULL).await;
        });
    });
    assert!(is_told(&heard, NULL), "{heard:?}");
}

/// A descriptor that is closed behind the file.
#[run_test(in_child)]
fn a_file_that_cannot_be_closed_is_logged_with_its_path() {
    use std::os::fd::AsRawFd;
    let (_folder, path) = place();
    filled(&path, 10);
    let name = path.display().to_string();
    let executor = LocalExecutor::default();
    for is_inside in [true, false] {
        let ((), heard) = hearing_so_far(|so_far| {
            let left = executor.run(async {
                let file = DmaFile::open(&path).await.expect("it is there");
                // SAFETY: the number stands for nothing from here on: this process opens
                // no other file before it is closed again.
                assert_eq!(unsafe { libc::close(file.as_raw_fd()) }, 0);
                if is_inside {
                    drop(file);
                    told(so_far, &name).await;
                    return None;
                }
                Some(file)
            });
            drop(left);
        });
        assert!(is_told(&heard, &name), "{is_inside} {heard:?}");
    }
}
