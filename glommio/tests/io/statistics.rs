//! What files count.

use glommio::RingIoStats;

use super::*;

fn stats() -> RingIoStats {
    executor().io_stats().all_rings()
}

#[run_test(in_each_folder)]
async fn operations_are_counted_when_they_have_succeeded(folder: TempDir) {
    let path = folder.path().join("file");
    filled(&path, 1000);
    stats();
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let file = options.dma_open(&path).await?;
    let buffered = options.buffered_open(&path).await?;
    let directory = Directory::open(folder.path()).await?;
    let counted = stats();
    assert_eq!((counted.files_opened(), counted.files_closed()), (3, 0));

    let aligned = file.align_up(500);
    file.read_at(0, 500).await?;
    assert_eq!(stats().file_reads(), (1, aligned.min(1000)));
    file.read_at(5000, 10).await?;
    assert_eq!(stats().file_reads(), (1, 0), "at the end of the file");
    let buffer = file.alloc_dma_buffer(4096);
    file.write_at(buffer, 0).await?;
    assert_eq!(stats().file_writes(), (1, 4096));

    buffered.write_at(vec![1; 100], 0).await?;
    buffered.read_at(0, 50).await?;
    let counted = stats();
    assert_eq!(counted.file_buffered_writes(), (1, 100));
    assert_eq!(counted.file_buffered_reads(), (1, 50));
    assert_eq!(
        (counted.file_reads(), counted.file_writes()),
        ((0, 0), (0, 0))
    );

    DmaFile::open(folder.path().join("missing"))
        .await
        .unwrap_err();
    buffered.read_at(1 << 63, 1).await.unwrap_err();
    file.fdatasync().await?;
    file.stat().await?;
    drop(file.dup()?);
    let counted = stats();
    assert_eq!(
        (counted.files_opened(), counted.file_buffered_reads()),
        (0, (0, 0))
    );
    file.close().await?;
    directory.close().await?;
    drop(buffered);
    sleep(Duration::from_millis(5)).await;
    assert_eq!(stats().files_closed(), 2, "not those by drop");
}

#[run_test(in_place)]
async fn streams_count_what_they_move(path: PathBuf) {
    stats();
    let mut writer = StreamWriterBuilder::new(BufferedFile::create(&path).await?).build();
    writer.write_all(&pattern(0, 10_000)).await?;
    writer.close().await?;
    let counted = stats();
    assert_eq!(counted.file_buffered_writes(), (1, 10_000));
    assert_eq!((counted.files_opened(), counted.files_closed()), (1, 1));
    let mut all = Vec::new();
    let file = DmaFile::open(&path).await?;
    let mut reader = DmaStreamReaderBuilder::new(file)
        .with_read_ahead(1)
        .with_buffer_size(4096)
        .build();
    reader.read_to_end(&mut all).await?;
    assert_eq!(stats().file_reads(), (3, 10_000));
    reader.close().await?;
    // Nothing is read ahead beyond its end.
    all.clear();
    let file = DmaFile::open(&path).await?;
    let mut reader = DmaStreamReaderBuilder::new(file)
        .with_read_ahead(4)
        .with_buffer_size(4096)
        .with_end_pos(4096)
        .build();
    reader.read_to_end(&mut all).await?;
    assert_eq!(all.len(), 4096);
    reader.close().await?;
    assert_eq!(stats().file_reads(), (1, 4096));
    all.clear();
    let file = BufferedFile::open(&path).await?;
    let mut reader = StreamReaderBuilder::new(file).build();
    reader.read_to_end(&mut all).await?;
    assert_eq!(stats().file_buffered_reads().1, 10_000);
    reader.close().await
}

#[run_test(in_place)]
async fn a_task_queue_has_the_operations_of_its_tasks(path: PathBuf) {
    filled(&path, 10_000);
    let queue = executor().create_task_queue(Shares::Static(10), Latency::NotImportant, "files");
    let file = Rc::new(DmaFile::open(&path).await?);
    let shared = Rc::clone(&file);
    let task = spawn_local_into(
        async move {
            let buffered = BufferedFile::open(&path).await?;
            buffered.read_at(0, 100).await?;
            shared.read_at(0, 4096).await?;
            buffered.close().await
        },
        queue,
    )?;
    task.await?;
    file.read_at(0, 4096).await?;
    let of_queue = executor().task_queue_io_stats(queue)?.all_rings();
    assert_eq!((of_queue.files_opened(), of_queue.files_closed()), (1, 1));
    assert_eq!(
        (of_queue.file_reads().0, of_queue.file_buffered_reads()),
        (1, (1, 100))
    );
    let again = executor().task_queue_io_stats(queue)?.all_rings();
    assert_eq!(again.files_opened(), 0, "reading resets");
    let all = stats();
    assert_eq!((all.files_opened(), all.file_reads().0), (2, 2));
}

#[test]
fn latencies_are_recorded_for_each_read_if_asked_for() {
    for records in [false, true] {
        let _watchdog = crate::common::watchdog();
        let builder = LocalExecutorBuilder::default().record_io_latencies(records);
        let result = builder.make().expect("an executor").run(async {
            let (_folder, path) = place();
            filled(&path, 10_000);
            let file = DmaFile::open(&path).await?;
            let buffered = BufferedFile::open(&path).await?;
            for _ in 0..3 {
                file.read_at(0, 100).await?;
                buffered.read_at(0, 100).await?;
            }
            file.close().await?;
            buffered.close().await?;
            let counted = stats();
            let samples = [
                counted.pre_reactor_io_scheduler_latency_us(),
                counted.io_latency_us(),
                counted.post_reactor_io_scheduler_latency_us(),
            ]
            .map(|it| it.count());
            assert_eq!(samples, [if records { 6 } else { 0 }; 3]);
            Result::Ok(())
        });
        result.expect("the operations succeed");
    }
}
