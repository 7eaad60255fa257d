//! Streams against a vector: any history of writes, flushes, seeks and reads.

use std::io::SeekFrom;

use futures_lite::AsyncSeekExt;
use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Write(usize),
    Flush,
    FlushAligned,
    Sync,
    Seek(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..10_000_usize).prop_map(Step::Write),
        1 => Just(Step::Flush),
        1 => Just(Step::FlushAligned),
        1 => Just(Step::Sync),
        1 => (0..30_000_u64).prop_map(Step::Seek),
    ]
}

fn blocks() -> impl Strategy<Value = usize> {
    prop_oneof![1..5000_usize, (1..8_usize).prop_map(|blocks| blocks * 4096)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_direct_writer_and_reader_agree_with_a_vector(
        steps in prop::collection::vec(step(), 0..30),
        buffer_bytes in blocks(),
        write_behind in 0..5_usize,
        read_ahead in 0..5_usize,
        start in 0..50_000_u64,
        len in 0..50_000_u64,
    ) {
        run(async {
            let folder = folder_in_memory().unwrap_or_else(folder);
            let path = folder.path().join("file");
            let file = DmaFile::create(&path).await?;
            let mut writer = DmaStreamWriterBuilder::new(file)
                .with_buffer_size(buffer_bytes)
                .with_write_behind(write_behind)
                .build();
            let mut written = 0;
            for step in steps {
                match step {
                    Step::Write(bytes) => {
                        writer.write_all(&pattern(written, bytes)).await?;
                        written += bytes;
                    }
                    Step::Flush | Step::Seek(_) => {
                        writer.flush().await?;
                        assert_eq!(writer.current_flushed_pos(), written as u64);
                    }
                    Step::FlushAligned => {
                        let flushed = writer.flush_aligned().await?;
                        assert!(fs::read(&path)?[..flushed as usize] == pattern(0, flushed as usize));
                    }
                    Step::Sync => assert_eq!(writer.sync().await?, written as u64),
                }
                assert_eq!(writer.current_pos(), written as u64);
            }
            writer.close().await?;
            assert!(fs::read(&path)? == pattern(0, written));

            let file = DmaFile::open(&path).await?;
            let mut reader = DmaStreamReaderBuilder::new(file)
                .with_buffer_size(buffer_bytes)
                .with_read_ahead(read_ahead)
                .with_start_pos(start)
                .with_end_pos(start + len)
                .build();
            let mut read = Vec::new();
            reader.read_to_end(&mut read).await?;
            let first = written.min(start as usize);
            let last = written.min((start + len) as usize);
            assert!(read == pattern(first, last - first));
            reader.close().await
        });
    }

    #[test]
    fn a_buffered_writer_and_reader_agree_with_a_vector(
        steps in prop::collection::vec(step(), 0..30),
        buffer_bytes in 0..5000_usize,
        seeks in prop::collection::vec((0..40_000_u64, 0..3000_usize), 0..20),
    ) {
        run(async {
            let folder = folder_in_memory().unwrap_or_else(folder);
            let path = folder.path().join("file");
            let file = BufferedFile::create(&path).await?;
            let mut writer = StreamWriterBuilder::new(file).with_buffer_size(buffer_bytes).build();
            let (mut content, mut at) = (Vec::new(), 0_usize);
            for step in steps {
                match step {
                    Step::Write(bytes) => {
                        writer.write_all(&pattern(at, bytes)).await?;
                        if bytes > 0 && content.len() < at + bytes {
                            content.resize(at + bytes, 0);
                        }
                        if bytes > 0 {
                            content[at..at + bytes].copy_from_slice(&pattern(at, bytes));
                        }
                        at += bytes;
                    }
                    Step::Flush | Step::FlushAligned | Step::Sync => {
                        writer.flush().await?;
                        assert!(fs::read(&path)? == content);
                    }
                    Step::Seek(to) => {
                        assert_eq!(writer.seek(SeekFrom::Start(to)).await?, to);
                        at = to as usize;
                    }
                }
            }
            writer.close().await?;
            assert!(fs::read(&path)? == content);

            let file = BufferedFile::open(&path).await?;
            let mut reader = StreamReaderBuilder::new(file).with_buffer_size(buffer_bytes).build();
            for (to, bytes) in seeks {
                reader.seek(SeekFrom::Start(to)).await?;
                let mut read = vec![0; bytes];
                let count = reader.read(&mut read).await?;
                let start = content.len().min(to as usize);
                assert!(content[start..].starts_with(&read[..count]));
                assert!(count > 0 || bytes == 0 || start == content.len());
                let position = reader.seek(SeekFrom::Current(0)).await?;
                assert_eq!(position, to + count as u64);
            }
            reader.close().await
        });
    }
}
