//! Streams that never wait, beside other tasks.

use super::*;

/// `fill_buf` of the trait asks twice in a row, and panics if the second answer is none.
#[run_test(in_place)]
async fn the_end_of_a_file_is_shown_as_often_as_it_is_asked_for(path: PathBuf) {
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
}
