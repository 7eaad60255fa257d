//! Streams that never wait, beside other tasks.

use std::cell::Cell;
use std::io::SeekFrom;
use std::rc::Rc;

use futures_lite::future::yield_now;
use futures_lite::{AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use glommio::io::{
    BufferedFile, DmaFile, DmaStreamReaderBuilder, DmaStreamWriterBuilder, StreamReaderBuilder,
    StreamWriterBuilder,
};
use glommio::spawn_local;

use super::*;

/// Calls `operation`, which does not wait, until another task of the queue has run.
async fn until_another_runs(
    what: &str,
    mut operation: impl AsyncFnMut() -> io::Result<()>,
) -> Result {
    let has_run = Rc::new(Cell::new(false));
    let runs = Rc::clone(&has_run);
    let other = spawn_local(async move {
        // It is polled as it is spawned, and then waits its turn.
        yield_now().await;
        runs.set(true);
    });
    let mut calls = 0_u64;
    while !has_run.get() {
        operation().await?;
        calls += 1;
        assert!(calls < 16 << 20, "{what} has kept the executor for itself");
    }
    other.await;
    Ok(())
}

/// `fill_buf` of the trait asks twice in a row, and panics if the second answer is none.
#[test]
fn the_end_of_a_file_is_shown_as_often_as_it_is_asked_for() {
    run(async {
        let folder = folder();
        let path = folder.path().join("file");
        filled(&path, 4096);
        let file = BufferedFile::open(&path).await?;
        let mut reader = StreamReaderBuilder::new(file).build();
        reader.read_exact(&mut [0; 4096]).await?;
        let other = spawn_local(async {
            loop {
                yield_now().await;
            }
        });
        // From here on the other task waits.
        yield_now().await;
        for _ in 0..1000 {
            assert!(reader.fill_buf().await?.is_empty());
        }
        other.cancel().await;
        reader.close().await?;
        Ok(())
    });
}

const BUFFER: usize = 64 << 20;

#[test]
fn reads_that_a_buffer_serves_return_to_the_executor() {
    run(async {
        let folder = folder();
        let path = folder.path().join("file");
        filled(&path, 4096);
        let file = BufferedFile::open(&path).await?;
        let mut reader = StreamReaderBuilder::new(file).build();
        reader.read_exact(&mut [0; 10]).await?; // fills the buffer
        until_another_runs("reading", async || {
            reader.seek(SeekFrom::Start(0)).await?;
            reader.read(&mut [0]).await.map(drop)
        })
        .await?;
        until_another_runs("filling the buffer", async || {
            reader.fill_buf().await.map(drop)
        })
        .await?;
        until_another_runs("seeking", async || {
            reader.seek(SeekFrom::Current(0)).await.map(drop)
        })
        .await?;
        reader.close().await?;

        let file = DmaFile::open(&path).await?;
        let mut reader = DmaStreamReaderBuilder::new(file).build();
        reader.read_exact(&mut [0; 10]).await?;
        until_another_runs("reading nothing", async || {
            reader
                .get_buffer_aligned(0)
                .await
                .map(drop)
                .map_err(Into::into)
        })
        .await?;
        reader.close().await?;

        // All of a large block.
        let file = DmaFile::create(&path).await?;
        file.truncate(BUFFER as u64).await?;
        file.close().await?;
        let file = DmaFile::open(&path).await?;
        let mut reader = DmaStreamReaderBuilder::new(file)
            .with_buffer_size(BUFFER)
            .with_read_ahead(1)
            .build();
        reader.read_exact(&mut [0; 10]).await?;
        until_another_runs("reading", async || {
            assert_eq!(reader.read(&mut [0]).await?, 1, "all was read by one task");
            Ok(())
        })
        .await?;
        reader.close().await
    });
}

#[test]
fn writes_that_a_buffer_takes_return_to_the_executor() {
    run(async {
        let folder = folder();
        let path = folder.path().join("file");
        let mut writer = StreamWriterBuilder::new(BufferedFile::create(&path).await?)
            .with_buffer_size(BUFFER)
            .build();
        until_another_runs("writing", async || writer.write_all(&[1]).await).await?;
        writer.flush().await?;
        until_another_runs("flushing nothing", async || writer.flush().await).await?;
        until_another_runs("seeking", async || {
            writer.seek(SeekFrom::Current(0)).await.map(drop)
        })
        .await?;
        writer.close().await?;

        let mut writer = DmaStreamWriterBuilder::new(DmaFile::create(&path).await?)
            .with_buffer_size(BUFFER)
            .build();
        until_another_runs("writing", async || writer.write_all(&[1]).await).await?;
        writer.flush().await?;
        until_another_runs("flushing nothing", async || writer.flush().await).await?;
        writer.close().await?;
        Ok(())
    });
}
