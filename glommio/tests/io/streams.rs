//! `StreamReader` and `StreamWriter`, through the page cache.

use std::io::SeekFrom;

use futures_lite::AsyncSeekExt;
use glommio::io::{StreamReader, StreamWriter};

use super::*;

async fn reader(path: &Path) -> Result<StreamReader> {
    Ok(StreamReaderBuilder::new(BufferedFile::open(path).await?).build())
}

async fn writer(path: &Path, buffer_bytes: usize) -> Result<StreamWriter> {
    let file = BufferedFile::create(path).await?;
    Ok(StreamWriterBuilder::new(file)
        .with_buffer_size(buffer_bytes)
        .build())
}

#[run_test(in_each_place)]
async fn a_reader_gives_the_bytes_between_start_and_end(path: PathBuf) {
    filled(&path, 20_001);
    for buffer_bytes in [0, 1, 100, 4096, 1 << 20] {
        for (start, end) in [
            (0, u64::MAX),
            (1, 19_999),
            (5, 5),
            (10, 3),
            (30_000, 40_000),
            (20_000, 20_002),
        ] {
            let file = BufferedFile::open(&path).await?;
            let mut reader = StreamReaderBuilder::new(file)
                .with_buffer_size(buffer_bytes)
                .with_start_pos(start)
                .with_end_pos(end)
                .build();
            let mut read = Vec::new();
            reader.read_to_end(&mut read).await?;
            let last = end.min(20_001) as usize;
            let expected = pattern(start as usize, last.saturating_sub(start as usize));
            assert!(read == expected, "{buffer_bytes} {start} {end}");
            reader.close().await?;
        }
    }
}

#[run_test(in_place)]
async fn lines_and_reads_take_turns(path: PathBuf) {
    let long = "x".repeat(10_000);
    fs::write(&path, format!("first\n\n{long}\nlast without an end"))?;
    let mut reader = reader(&path).await?;
    let mut line = String::new();
    reader.read_line(&mut line).await?;
    assert_eq!(line, "first\n");
    let mut byte = [0];
    reader.read_exact(&mut byte).await?;
    assert_eq!(byte, *b"\n");
    let mut lines = reader.lines();
    assert_eq!(lines.next().await.unwrap()?, long);
    assert_eq!(lines.next().await.unwrap()?, "last without an end");
    assert!(lines.next().await.is_none());
}

#[run_test(in_place)]
async fn a_file_that_grows_is_followed(path: PathBuf) {
    fs::write(&path, "")?;
    let mut reader = reader(&path).await?;
    let mut file = fs::OpenOptions::new().append(true).open(&path)?;
    for _ in 0..3 {
        let mut buf = [0; 10];
        assert_eq!(reader.read(&mut buf).await?, 0);
        io::Write::write_all(&mut file, b"more")?;
        assert_eq!(reader.read(&mut buf).await?, 4);
    }
    reader.close().await
}

#[run_test(in_each_place)]
async fn a_seek_is_from_the_byte_that_comes_next(path: PathBuf) {
    filled(&path, 10_000);
    let mut reader = reader(&path).await?;
    let mut four = [0; 4];
    reader.read_exact(&mut four).await?;
    assert_eq!(reader.seek(SeekFrom::Current(0)).await?, 4);
    for (to, expected) in [
        (SeekFrom::Start(200), 200),
        (SeekFrom::Current(-100), 100),
        (SeekFrom::Current(4000), 4100),
        (SeekFrom::Start(0), 0),
        (SeekFrom::End(-4), 9996),
        (SeekFrom::End(-10_000), 0),
        (SeekFrom::Start(9_999), 9_999),
    ] {
        assert_eq!(reader.seek(to).await?, expected, "{to:?}");
        let count = reader.read(&mut four).await?;
        assert_eq!(four[..count], pattern(expected as usize, count));
        assert_eq!(
            reader.seek(SeekFrom::Current(-(count as i64))).await?,
            expected
        );
    }
    assert_eq!(reader.seek(SeekFrom::End(100)).await?, 10_100);
    assert_eq!(reader.read(&mut four).await?, 0);
    for wrong in [
        SeekFrom::Current(-10_101),
        SeekFrom::End(-10_001),
        SeekFrom::Start(u64::MAX),
        SeekFrom::Current(i64::MAX),
    ] {
        let error = reader.seek(wrong).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{wrong:?}");
    }
    assert_eq!(reader.seek(SeekFrom::Current(0)).await?, 10_100);
    reader.close().await?;
}

/// The end that a reader was told does not move with it.
#[run_test(in_place)]
async fn a_reader_can_seek_past_its_end_and_back(path: PathBuf) {
    filled(&path, 1000);
    let file = BufferedFile::open(&path).await?;
    let mut reader = StreamReaderBuilder::new(file)
        .with_start_pos(10)
        .with_end_pos(100)
        .build();
    let mut buf = [0; 1000];
    assert_eq!(reader.seek(SeekFrom::Start(500)).await?, 500);
    assert_eq!(reader.read(&mut buf).await?, 0);
    assert_eq!(reader.seek(SeekFrom::Start(90)).await?, 90);
    assert_eq!(reader.read(&mut buf).await?, 10);
    assert_eq!(reader.read(&mut buf).await?, 0);
    assert_eq!(reader.seek(SeekFrom::Start(0)).await?, 0);
    assert_eq!(reader.read(&mut buf).await?, 100);
    reader.close().await
}

#[run_test(in_each_place)]
async fn what_is_written_is_in_the_file_in_few_writes(path: PathBuf) {
    for buffer_bytes in [0, 1, 100, 4096, 131_072] {
        for len in [0, 1, 100, 4096, 10_001] {
            let mut writer = writer(&path, buffer_bytes).await?;
            executor().io_stats();
            for piece in pattern(0, len).chunks(7) {
                writer.write_all(piece).await?;
            }
            writer.flush().await?;
            assert!(fs::read(&path)? == pattern(0, len), "{buffer_bytes} {len}");
            let (writes, bytes) = executor().io_stats().all_rings().file_buffered_writes();
            assert_eq!(bytes, len as u64);
            assert_eq!(writes, (len as u64).div_ceil(buffer_bytes.max(1) as u64));
            writer.close().await?;
            writer.close().await?;
            assert!(fs::read(&path)? == pattern(0, len));
        }
    }
}

#[run_test(in_each_place)]
async fn seeking_writes_what_was_accepted_where_it_belongs(path: PathBuf) {
    let mut writer = writer(&path, 4096).await?;
    writer.write_all(b"0123456789").await?;
    assert_eq!(writer.seek(SeekFrom::Start(2)).await?, 2);
    writer.write_all(b"ab").await?;
    assert_eq!(writer.seek(SeekFrom::Current(1)).await?, 5);
    writer.write_all(b"c").await?;
    assert_eq!(writer.seek(SeekFrom::End(0)).await?, 10);
    writer.write_all(b"d").await?;
    assert_eq!(writer.seek(SeekFrom::End(4)).await?, 15);
    writer.write_all(b"e").await?;
    let error = writer.seek(SeekFrom::Current(-100)).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    writer.close().await?;
    assert_eq!(fs::read(&path)?, b"01ab4c6789d\0\0\0\0e");
}

#[run_test(in_place)]
async fn after_close_all_but_close_is_an_error(path: PathBuf) {
    let mut writer = writer(&path, 4096).await?;
    writer.close().await?;
    writer.close().await?;
    assert_closed(writer.write(b"more").await);
    assert_closed(writer.flush().await);
    assert_closed(writer.seek(SeekFrom::Start(0)).await);
}

#[run_test]
async fn an_error_of_a_write_stays_and_close_tells_it() {
    let mut full = OpenOptions::new();
    full.write(true);
    let open = || full.buffered_open("/dev/full");
    let mut writer = StreamWriterBuilder::new(open().await?).build();
    writer.write_all(b"accepted").await?;
    let error = writer.flush().await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    for _ in 0..2 {
        assert_eq!(
            writer.write(b"more").await.unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
        assert_eq!(
            writer.flush().await.unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
    }
    assert_eq!(
        writer.close().await.unwrap_err().kind(),
        io::ErrorKind::StorageFull
    );

    let mut writer = StreamWriterBuilder::new(open().await?).build();
    writer.write_all(b"accepted").await?;
    assert_eq!(
        writer.close().await.unwrap_err().kind(),
        io::ErrorKind::StorageFull
    );
    assert_closed(writer.write(b"more").await);
}

#[run_test(in_each_place)]
async fn whatever_is_given_up_the_writer_goes_on(path: PathBuf) {
    let mut writer = writer(&path, 1000).await?;
    let mut numbers = crate::common::Numbers::new(3);
    let mut content = Vec::new();
    let mut at = 0;
    for _ in 0..500 {
        let polls = numbers.below(3);
        match numbers.below(5) {
            0 => give_up(writer.flush(), polls).await,
            1 => {
                let to = numbers.below(content.len() as u64 + 100);
                if poll_once(writer.seek(SeekFrom::Start(to))).await.is_some() {
                    at = to as usize;
                }
            }
            _ => {
                let bytes = pattern(at, numbers.below(3000) as usize);
                if let Some(accepted) = poll_once(writer.write(&bytes)).await {
                    let end = at + accepted?;
                    if content.len() < end {
                        content.resize(end, 0);
                    }
                    content[at..end].copy_from_slice(&bytes[..end - at]);
                    at = end;
                }
            }
        }
    }
    writer.flush().await?;
    assert!(fs::read(&path)? == content);
    // A close that is given up.
    drop(poll_once(writer.close()).await);
    writer.close().await?;
    assert!(fs::read(&path)? == content);
}
