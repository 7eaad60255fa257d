//! Full disks, limits of the process, and files that may not be written: in processes of their own.

use nix::sys::resource::Resource;

use super::*;

/// Files may have so many bytes: a multiple of every block.
const MOST: u64 = 64 << 10;

fn limited(body: impl FnOnce()) {
    in_child(|| {
        // SAFETY: a disposition that is no function.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        set_limit(Resource::RLIMIT_FSIZE, MOST);
        body();
    });
}

#[run_test(limited)]
fn a_file_that_may_not_grow_takes_what_it_can_and_says_the_rest() {
    run(async {
        for (_folder, path) in places(folders()) {
            let file = BufferedFile::create(&path).await?;
            let written = file.write_at(pattern(0, 100_000), 0).await?;
            assert_eq!(written as u64, MOST, "a short count");
            let (op, _, errno) = told(file.write_at(vec![1], MOST).await);
            assert_eq!((op, errno), ("Writing", Some(libc::EFBIG)));
            let (op, _, errno) = told(file.truncate(MOST + 1).await);
            assert_eq!((op, errno), ("Truncating", Some(libc::EFBIG)));
            file.close().await?;
            assert!(fs::read(&path)? == pattern(0, MOST as usize));

            let file = DmaFile::create(&path).await?;
            let mut buffer = file.alloc_dma_buffer(4096);
            buffer.as_bytes_mut().fill(1);
            assert_eq!(told(file.write_at(buffer, MOST).await).2, Some(libc::EFBIG));
            file.close().await?;
        }
        Ok(())
    });
}

#[run_test(limited)]
fn a_buffered_stream_says_that_it_could_not_write_all() {
    run(async {
        for (_folder, path) in places(folders()) {
            // The last one is one buffer, of which the kernel takes a part.
            for (buffer_bytes, bytes) in [
                (1000, 200_000),
                (4096, 200_000),
                (100_000, 200_000),
                (200_000, 100_000),
            ] {
                let file = BufferedFile::create(&path).await?;
                let mut writer = StreamWriterBuilder::new(file)
                    .with_buffer_size(buffer_bytes)
                    .build();
                let wrote = writer.write_all(&pattern(0, bytes)).await;
                let flushed = writer.flush().await;
                assert!(wrote.is_err() || flushed.is_err());
                assert_eq!(flushed.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
                assert_eq!(
                    writer.close().await.unwrap_err().kind(),
                    io::ErrorKind::FileTooLarge
                );
                // What is there is as it was written, up to the limit.
                assert!(
                    fs::read(&path)? == pattern(0, MOST as usize),
                    "{buffer_bytes}"
                );
            }
        }
        Ok(())
    });
}

#[run_test(limited)]
fn a_direct_stream_says_how_much_is_written_and_hangs_nowhere() {
    run(async {
        for folder in folders() {
            let path = folder.path().join("file");
            for (buffer_bytes, write_behind) in [(4096, 1), (4096, 4), (131_072, 4), (24_576, 2)] {
                let file = DmaFile::create(&path).await?;
                let mut writer = DmaStreamWriterBuilder::new(file)
                    .with_buffer_size(buffer_bytes)
                    .with_write_behind(write_behind)
                    .build();
                let wrote = writer.write_all(&pattern(0, 400_000)).await;
                let flushed = writer.flush().await;
                assert!(wrote.is_err() || flushed.is_err());
                let is_told = |error: &io::Error| {
                    [
                        io::ErrorKind::FileTooLarge,
                        io::ErrorKind::WriteZero,
                        io::ErrorKind::InvalidInput,
                    ]
                    .contains(&error.kind())
                };
                let error = flushed.unwrap_err();
                assert!(is_told(&error), "{error:?}");
                assert!(writer.write(&[1]).await.is_err());
                assert!(writer.sync().await.is_err());
                let safe = writer.current_flushed_pos() as usize;
                assert!(safe as u64 <= MOST);
                let error = writer.close().await.unwrap_err();
                assert!(is_told(&error), "{error:?}");
                assert!(
                    fs::read(&path)?[..safe] == pattern(0, safe),
                    "{buffer_bytes}"
                );
            }
            let sealed = ImmutableFileBuilder::new(folder.path().join("immutable"));
            let mut sink = sealed.build_sink().await?;
            let wrote = sink.write_all(&pattern(0, 400_000)).await;
            let sealed = sink.seal().await;
            assert!(wrote.is_err() || sealed.is_err());
            assert!(sealed.is_err());
        }
        Ok(())
    });
}

#[run_test(run_in_child)]
async fn no_descriptor_is_an_error_of_open() {
    let folder = folder();
    let path = folder.path().join("file");
    filled(&path, 10);
    let file = DmaFile::open(&path).await?;
    set_limit(Resource::RLIMIT_NOFILE, 0);
    let emfile = Some(libc::EMFILE);
    assert_eq!(
        told(DmaFile::open(&path).await),
        ("Opening", Some(path.clone()), emfile)
    );
    let other = folder.path().join("other");
    assert_eq!(told(BufferedFile::create(&other).await).2, emfile);
    assert_eq!(told(file.dup()).0, "Duplicating");
    set_limit(Resource::RLIMIT_NOFILE, 100);
    assert_eq!(*file.read_at(0, 10).await?, pattern(0, 10));
    file.close().await
}

#[test]
fn a_small_io_memory_and_a_small_ring_do() {
    let (_folder, path) = place();
    filled(&path, 1 << 20);
    let _watchdog = crate::common::watchdog();
    let executor = glommio::LocalExecutorBuilder::default()
        .io_memory(1)
        .ring_depth(1)
        .make()
        .expect("an executor");
    executor.run(async {
        let file = std::rc::Rc::new(DmaFile::open(&path).await.expect("it is there"));
        let tasks: Vec<_> = (0..200)
            .map(|at| {
                let file = std::rc::Rc::clone(&file);
                glommio::spawn_local(async move { file.read_at(at * 1000, 300_000).await })
            })
            .collect();
        for (at, task) in tasks.into_iter().enumerate() {
            let read = task.await.expect("reads succeed");
            assert!(*read == pattern(at * 1000, 300_000));
        }
    });
}
