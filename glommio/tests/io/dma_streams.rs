//! `DmaStreamReader` and `DmaStreamWriter`.

use glommio::io::DmaStreamWriter;

use super::*;

async fn reader(path: &Path) -> Result<DmaStreamReaderBuilder> {
    Ok(DmaStreamReaderBuilder::new(DmaFile::open(path).await?))
}

async fn writer(path: &Path, buffer_bytes: usize) -> Result<DmaStreamWriter> {
    let file = DmaFile::create(path).await?;
    Ok(DmaStreamWriterBuilder::new(file)
        .with_buffer_size(buffer_bytes)
        .build())
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).expect("it is there").len()
}

/// Any size of buffers, powers of two or not, any start and end, with and without reading ahead.
#[run_test(in_each_place)]
async fn a_reader_gives_the_bytes_between_start_and_end(path: PathBuf) {
    const LEN: usize = 70_001;
    filled(&path, LEN);
    for buffer_bytes in [0, 512, 3 * 4096, 5 * 4096, 65_536, 1 << 20] {
        for read_ahead in [0, 1, 4, usize::MAX] {
            for (start, end) in [
                (0, u64::MAX),
                (1, 69_999),
                (12_288, 12_289),
                (5000, 5000),
                (60_000, 10),
                (70_001, u64::MAX),
                (100_000, 200_000),
                (69_000, 70_002),
            ] {
                let mut reader = reader(&path)
                    .await?
                    .with_buffer_size(buffer_bytes)
                    .with_read_ahead(read_ahead)
                    .with_start_pos(start)
                    .with_end_pos(end)
                    .build();
                let mut read = Vec::new();
                reader.read_to_end(&mut read).await?;
                let last = (end.min(LEN as u64) as usize).max(start as usize);
                let expected =
                    pattern(start as usize, last.min(LEN).saturating_sub(start as usize));
                assert!(
                    read == expected,
                    "{buffer_bytes} {read_ahead} {start} {end}"
                );
                assert_eq!(reader.current_pos(), start + read.len() as u64);
                reader.close().await?;
            }
        }
    }
}

#[run_test(in_place)]
async fn buffers_end_where_blocks_do(path: PathBuf) {
    filled(&path, 16_384);
    let mut reader = reader(&path).await?.with_buffer_size(4096).build();
    reader.skip(4094);
    let two = reader.get_buffer_aligned(130).await?;
    assert_eq!(*two, pattern(4094, 2));
    assert_eq!(reader.current_pos(), 4096);
    assert_eq!(*reader.get_buffer_aligned(64).await?, pattern(4096, 64));
    assert!(reader.get_buffer_aligned(0).await?.is_empty());
    assert_eq!(reader.get_buffer_aligned(u64::MAX).await?.len(), 4032);
    assert_eq!(reader.get_buffer_aligned(4096).await?.len(), 4096);
    reader.skip(10_000);
    assert_eq!(reader.current_pos(), 22_288);
    assert!(reader.get_buffer_aligned(1).await?.is_empty());
    reader.skip(u64::MAX);
    assert_eq!(reader.current_pos(), u64::MAX);
    assert!(reader.get_buffer_aligned(1).await?.is_empty());
    reader.close().await?;
    assert_eq!(*two, pattern(4094, 2));
}

#[run_test(in_place)]
async fn reading_past_the_end_says_so(path: PathBuf) {
    filled(&path, 5000);
    let mut reader = reader(&path).await?.with_end_pos(4000).build();
    let mut buf = vec![0; 4001];
    let error = reader.read_exact(&mut buf).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(reader.current_pos(), 4000);
    reader.close().await
}

#[run_test(in_place)]
async fn readers_of_one_file_have_positions_of_their_own(path: PathBuf) {
    filled(&path, 50_000);
    let file = Rc::new(DmaFile::open(&path).await?);
    let builder = DmaStreamReaderBuilder::from_rc(Rc::clone(&file)).with_buffer_size(4096);
    let (mut one, mut other) = (builder.clone().build(), builder.build());
    let (mut of_one, mut of_other) = (Vec::new(), Vec::new());
    let (a, b) = zip(
        one.read_to_end(&mut of_one),
        other.read_to_end(&mut of_other),
    )
    .await;
    assert_eq!((a?, b?), (50_000, 50_000));
    assert!(of_one == of_other && of_one == pattern(0, 50_000));
    one.close().await?;
    other.close().await?;
    assert_eq!(*file.read_at(0, 3).await?, pattern(0, 3));
    file.close_rc().await?;
}

#[run_test(in_folder)]
async fn an_error_comes_after_the_data_before_it_and_again(folder: TempDir) {
    // One that can only be written.
    let path = folder.path().join("file");
    let file = DmaFile::create(&path).await?;
    let mut reader = DmaStreamReaderBuilder::new(file).build();
    for _ in 0..3 {
        let (op, _, errno) = told(reader.get_buffer_aligned(10).await);
        assert_eq!((op, errno), ("Reading", Some(libc::EBADF)));
    }
    let error = reader.read(&mut [0; 10]).await.unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EBADF), "{error}");
    reader.close().await?;

    let file = DmaFile::create(&path).await?;
    let reader = DmaStreamReaderBuilder::new(file).build();
    sleep(Duration::from_millis(20)).await;
    let (op, _, errno) = told(reader.close().await);
    assert_eq!((op, errno), ("Reading", Some(libc::EBADF)));
}

#[run_test(in_each_place)]
async fn a_flush_pads_the_last_buffer_and_the_end_cuts_it(path: PathBuf) {
    let mut writer = writer(&path, 4096).await?;
    writer.write_all(&pattern(0, 5000)).await?;
    assert_eq!(
        (writer.current_pos(), size(&path)),
        (5000, writer.current_flushed_pos())
    );
    assert_eq!(writer.flush_aligned().await?, 4096);
    assert_eq!(size(&path), 4096);
    writer.flush().await?;
    assert_eq!((writer.current_flushed_pos(), size(&path)), (5000, 8192));
    let mut expected = pattern(0, 5000);
    expected.resize(8192, 0);
    assert!(fs::read(&path)? == expected, "padded with zeros");
    assert_eq!(writer.flush_aligned().await?, 5000);
    writer.flush().await?;
    // The buffer goes on, and is written again.
    writer.write_all(&pattern(5000, 100)).await?;
    assert_eq!(writer.current_flushed_pos(), 5000);
    assert_eq!(writer.sync().await?, 5100);
    drop(writer);
    assert_eq!(size(&path), 5100);
    assert_eq!(fs::read(&path)?, pattern(0, 5100));
}

#[run_test(in_each_place)]
async fn a_writer_that_is_dropped_leaves_what_was_flushed(path: PathBuf) {
    let mut writer = writer(&path, 4096).await?;
    writer.write_all(&pattern(0, 5000)).await?;
    writer.flush().await?;
    writer.write_all(&pattern(5000, 10)).await?;
    drop(writer);
    assert_eq!(fs::read(&path)?, pattern(0, 5000));
}

#[run_test(in_place)]
async fn nothing_is_written_twice_or_out_of_order(path: PathBuf) {
    let mut writer = writer(&path, 4096).await?;
    writer.write_all(&pattern(0, 4096)).await?;
    writer.flush().await?;
    glommio::executor().io_stats();
    writer.flush().await?;
    writer.flush_aligned().await?;
    assert_eq!(
        glommio::executor().io_stats().all_rings().file_writes(),
        (0, 0)
    );
    assert_eq!(writer.write(&[]).await?, 0);
    writer.close().await?;
}

#[run_test(in_each_place)]
async fn several_tasks_write_and_flush_at_once(path: PathBuf) {
    let writer = Rc::new(writer(&path, 4096).await?);
    let tasks: Vec<_> = (0..10_u8)
        .map(|task| {
            let writer = Rc::clone(&writer);
            spawn_local(async move {
                for round in 0..20 {
                    (&*writer).write_all(&[task; 777]).await?;
                    let before = writer.current_pos();
                    let flushed = match (task + round) % 5 {
                        0 => {
                            (&*writer).flush().await?;
                            writer.current_flushed_pos()
                        }
                        1 => writer.sync().await?,
                        2 => writer.flush_aligned().await?.max(before),
                        3 => writer.sync_aligned().await?.max(before),
                        _ => before,
                    };
                    assert!(flushed >= before);
                }
                Ok::<_, GlommioError<()>>(())
            })
        })
        .collect();
    for task in tasks {
        task.await?;
    }
    (&*writer).close().await?;
    let mut written = fs::read(&path)?;
    assert_eq!(written.len(), 10 * 20 * 777);
    written.sort_unstable();
    for (task, part) in written.chunks(20 * 777).enumerate() {
        assert!(part.iter().all(|byte| usize::from(*byte) == task));
    }
}

#[run_test(in_place)]
async fn after_close_everything_is_an_error(path: PathBuf) {
    let mut writer = writer(&path, 4096).await?;
    writer.write_all(b"content").await?;
    writer.close().await?;
    assert_closed(writer.close().await);
    assert_closed(writer.write(b"more").await);
    assert_closed(writer.flush().await);
    assert_closed(writer.sync().await.map_err(io::Error::from));
    assert_closed(writer.sync_aligned().await.map_err(io::Error::from));
    assert_closed(writer.flush_aligned().await.map_err(io::Error::from));
    assert_eq!((writer.current_pos(), writer.current_flushed_pos()), (7, 7));
    assert_eq!(fs::read(&path)?, b"content");
}

#[run_test(in_each_place)]
async fn a_close_that_is_given_up_goes_on(path: PathBuf) {
    let mut writer = writer(&path, 4096).await?;
    writer.write_all(&pattern(0, 50_001)).await?;
    assert!(poll_once(writer.close()).await.is_none());
    drop(writer);
    while size(&path) != 50_001 {
        sleep(Duration::from_millis(1)).await;
    }
    assert!(fs::read(&path)? == pattern(0, 50_001));
}

#[run_test(in_each_place)]
async fn whatever_is_given_up_the_writer_goes_on(path: PathBuf) {
    let mut writer = writer(&path, 4096).await?;
    let mut numbers = crate::common::Numbers::new(7);
    let mut accepted = 0;
    for _ in 0..500 {
        let polls = numbers.below(3);
        match numbers.below(6) {
            0 => give_up(writer.flush(), polls).await,
            1 => give_up(writer.sync(), polls).await,
            2 => give_up(writer.sync_aligned(), polls).await,
            3 => give_up(writer.flush_aligned(), polls).await,
            _ => {
                let len = numbers.below(9000) as usize;
                give_up(writer.write(&pattern(accepted, len)), polls).await;
                accepted = writer.current_pos() as usize;
            }
        }
        assert!(writer.current_flushed_pos() <= writer.current_pos());
    }
    writer.close().await?;
    assert!(fs::read(&path)? == pattern(0, accepted));
}

#[run_test(in_place)]
async fn an_error_of_a_write_stays(path: PathBuf) {
    filled(&path, 10);
    // One that can only be read.
    let file = OpenOptions::new().read(true).dma_open(&path).await?;
    let mut writer = DmaStreamWriterBuilder::new(file)
        .with_buffer_size(4096)
        .build();
    let mut accepted = 0;
    let error = loop {
        match writer.write(&[1; 4096]).await {
            Ok(count) => accepted += count,
            Err(error) => break error,
        }
        assert!(accepted < 1 << 20, "it never fails");
    };
    let is_expected = |error: io::Error| error.raw_os_error() == Some(libc::EBADF);
    assert!(is_expected(error));
    for _ in 0..2 {
        assert!(is_expected(writer.write(b"more").await.unwrap_err()));
        assert!(is_expected(writer.flush().await.unwrap_err()));
        assert_eq!(told(writer.sync().await).0, "Writing");
        assert_eq!(told(writer.flush_aligned().await).0, "Writing");
    }
    assert_eq!(writer.current_flushed_pos(), 0);
    assert!(is_expected(writer.close().await.unwrap_err()));
    assert_closed(writer.close().await);
    assert_eq!(fs::read(&path)?, pattern(0, 10));
}

#[run_test(in_place)]
async fn the_rest_of_a_longer_file_goes_with_the_last_buffer(path: PathBuf) {
    for (len, expected) in [(4096, 20_000), (5000, 5000)] {
        filled(&path, 20_000);
        let file = OpenOptions::new().write(true).dma_open(&path).await?;
        let mut writer = DmaStreamWriterBuilder::new(file)
            .with_buffer_size(4096)
            .build();
        writer.write_all(&vec![1; len]).await?;
        writer.close().await?;
        assert_eq!(size(&path), expected, "{len}");
    }
}
