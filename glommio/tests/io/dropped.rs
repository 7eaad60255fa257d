//! Futures and files that are given up: no descriptor and no memory stays behind, and nothing
//! happens to others.

use futures_lite::stream;
use glommio::io::{DmaBuffer, MergedBufferLimit, OwnedDmaFile, ReadAmplificationLimit};

use super::*;
use crate::common::{leaves_no_descriptor, settle};

#[run_test(run_in_child)]
async fn ten_thousand_files_that_are_dropped_are_closed() {
    for folder in folders() {
        let path = folder.path().join("file");
        filled(&path, 10);
        let before = descriptors();
        for at in 0..10_000 {
            match at % 5 {
                0 => drop(DmaFile::open(&path).await?),
                1 => drop(BufferedFile::open(&path).await?),
                2 => drop(Directory::open(folder.path()).await?),
                3 => drop(OwnedDmaFile::from(DmaFile::open(&path).await?)),
                _ => drop(DmaFile::open(&path).await?.clone()),
            }
            assert!(
                descriptors() < before + 200 || at % 100 != 0,
                "at file {at}"
            );
        }
        settle(before).await;
    }
    Ok(())
}

#[run_test(run_in_child)]
async fn opens_that_are_given_up_leave_no_descriptor() {
    for folder in folders() {
        let path = folder.path().join("file");
        filled(&path, 10);
        let before = descriptors();
        let mut numbers = Numbers::new(1);
        for _ in 0..2000 {
            let polls = numbers.below(3);
            match numbers.below(5) {
                0 => give_up(DmaFile::open(&path), polls).await,
                1 => give_up(DmaFile::create(folder.path().join("new")), polls).await,
                2 => give_up(BufferedFile::open(&path), polls).await,
                3 => give_up(Directory::open(folder.path()), polls).await,
                _ => {
                    let mut options = OpenOptions::new();
                    options.write(true).tmpfile(true);
                    give_up(options.buffered_open(folder.path()), polls).await;
                }
            }
        }
        settle(before).await;
    }
    Ok(())
}

#[run_test(run_in_child)]
async fn closes_that_are_given_up_close_all_the_same() {
    let folder = folder();
    let path = folder.path().join("file");
    filled(&path, 10);
    let before = descriptors();
    for polls in 0..3 {
        for _ in 0..200 {
            give_up(DmaFile::open(&path).await?.close(), polls).await;
            give_up(BufferedFile::open(&path).await?.close(), polls).await;
            let file = Rc::new(DmaFile::open(&path).await?);
            give_up(file.close_rc(), polls).await;
            give_up(Directory::open(folder.path()).await?.close(), polls).await;
        }
    }
    settle(before).await;
}

/// Whatever is under way when an executor ends.
#[run_test(leaves_no_descriptor)]
fn an_executor_that_ends_leaves_no_descriptor() {
    let folder = folder();
    let path = folder.path().join("file");
    filled(&path, 100_000);
    for rounds in 0..30 {
        run(async {
            let kept = Rc::new(DmaFile::open(&path).await?);
            for _ in 0..10 {
                let (path, kept) = (path.clone(), Rc::clone(&kept));
                glommio::spawn_local(async move {
                    loop {
                        let file = BufferedFile::open(&path).await?;
                        file.read_at(0, 5000).await?;
                        kept.read_at(100, 5000).await?;
                        let mut writer = {
                            let mut options = OpenOptions::new();
                            options.write(true).tmpfile(true);
                            let folder = path.parent().expect("it has one");
                            let file = options.dma_open(folder).await?;
                            DmaStreamWriterBuilder::new(file).build()
                        };
                        writer.write_all(&[1; 10_000]).await?;
                        writer.close().await?;
                    }
                    #[allow(unreachable_code, reason = "it says what the type of errors is")]
                    Ok::<_, GlommioError<()>>(())
                })
                .detach();
            }
            for _ in 0..rounds {
                sleep(Duration::from_micros(100)).await;
            }
            Ok(())
        });
    }
}

/// Has the kernel get what was started, and lets it go on for a while.
async fn handed_over(round: u32) {
    match round % 2 {
        0 => glommio::executor().yield_task_queue_now().await,
        _ => sleep(Duration::from_micros(1)).await,
    }
}

/// Buffers full of `byte`, which get the memory that was given back last.
fn full_of(byte: u8, file: &DmaFile) -> Vec<DmaBuffer> {
    let mut buffers: Vec<_> = (0..10).map(|_| file.alloc_dma_buffer(65_536)).collect();
    for buffer in &mut buffers {
        buffer.as_bytes_mut().fill(byte);
    }
    buffers
}

/// Memory of operations that no task waits for is used by the next ones, not before.
#[run_test(in_each_place)]
async fn reads_that_are_given_up_do_not_write_into_the_memory_of_others(path: PathBuf) {
    filled(&path, 1 << 20);
    let file = DmaFile::open(&path).await?;
    for round in 0..300_u32 {
        let mut given_up: Vec<_> = (0..10)
            .map(|at| Box::pin(file.read_at(at * 65_536, 65_536)))
            .collect();
        for read in &mut given_up {
            let _started = poll_once(read).await;
        }
        handed_over(round).await;
        drop(given_up);
        let byte = round as u8 | 1;
        let buffers = full_of(byte, &file);
        sleep(Duration::from_micros(30)).await;
        for buffer in &buffers {
            assert!(buffer.as_bytes().iter().all(|it| *it == byte));
        }
    }
    file.close().await?;
}

#[run_test(in_each_place)]
async fn writes_that_are_given_up_do_not_write_the_memory_of_others(path: PathBuf) {
    filled(&path, 10 * 65_536);
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let file = options.dma_open(&path).await?;
    for round in 0..rounds(60) as u32 {
        let mut given_up: Vec<_> = (0..10)
            .map(|at| {
                let mut buffer = file.alloc_dma_buffer(65_536);
                let there = pattern(at * 65_536, 65_536);
                buffer.as_bytes_mut().copy_from_slice(&there);
                Box::pin(file.write_at(buffer, at as u64 * 65_536))
            })
            .collect();
        for write in &mut given_up {
            let _started = poll_once(write).await;
        }
        handed_over(round).await;
        drop(given_up);
        let _others = full_of(round as u8, &file);
        sleep(Duration::from_micros(30)).await;
    }
    // It waits for all of them.
    file.close().await?;
    assert!(fs::read(&path)? == pattern(0, 10 * 65_536));
}

/// What was given up may go on in the kernel, but not beyond the close.
#[run_test]
async fn nothing_is_written_to_a_file_that_is_closed() {
    const BYTES: usize = 32 << 20;
    for (_folder, path) in places(folders()) {
        let length = || fs::metadata(&path).map(|it| it.len());
        for _ in 0..3 {
            let file = BufferedFile::create(&path).await?;
            let mut write = Box::pin(file.write_at(vec![1; BYTES], 0));
            // A worker thread of the kernel begins, and takes some milliseconds.
            while poll_once(&mut write).await.is_none() && length()? == 0 {
                sleep(Duration::from_micros(10)).await;
            }
            drop(write);
            file.close().await?;
            let closed = length()?;
            sleep(Duration::from_millis(10)).await;
            assert_eq!(length()?, closed);
        }
    }
}

#[run_test(in_place)]
async fn futures_that_are_forgotten_leak_no_more_than_themselves(path: PathBuf) {
    filled(&path, 100_000);
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let file = options.dma_open(&path).await?;
    for _ in 0..50 {
        let mut read = Box::pin(file.read_at(0, 100_000));
        assert!(poll_once(&mut read).await.is_none());
        forget(read);
        let mut opens = Box::pin(DmaFile::open(&path));
        assert!(poll_once(&mut opens).await.is_none());
        forget(opens);
    }
    assert_eq!(*file.read_at(10, 10).await?, pattern(10, 10));
    file.close().await
}

#[run_test(run_in_child)]
async fn streams_that_are_dropped_at_any_moment_leave_no_descriptor() {
    for folder in folders() {
        let [path, new] = ["file", "new"].map(|name| folder.path().join(name));
        filled(&path, 200_000);
        let before = descriptors();
        let mut numbers = Numbers::new(9);
        for _ in 0..400 {
            let polls = numbers.below(4);
            let mut buf = vec![0; 20_000];
            match numbers.below(6) {
                0 => {
                    let file = DmaFile::open(&path).await?;
                    let mut reader = DmaStreamReaderBuilder::new(file)
                        .with_buffer_size(4096)
                        .build();
                    give_up(reader.read_exact(&mut buf), polls).await;
                    give_up(reader.close(), polls).await;
                }
                1 => {
                    let file = DmaFile::create(&new).await?;
                    let mut writer = DmaStreamWriterBuilder::new(file)
                        .with_buffer_size(4096)
                        .build();
                    give_up(writer.write_all(&buf), polls).await;
                    give_up(writer.flush(), polls).await;
                    give_up(writer.close(), polls).await;
                }
                2 => {
                    let file = BufferedFile::open(&path).await?;
                    let mut reader = StreamReaderBuilder::new(file).build();
                    give_up(reader.read_exact(&mut buf), polls).await;
                    give_up(reader.close(), polls).await;
                }
                3 => {
                    let file = BufferedFile::create(&new).await?;
                    let mut writer = StreamWriterBuilder::new(file)
                        .with_buffer_size(4096)
                        .build();
                    give_up(writer.write_all(&buf), polls).await;
                    give_up(writer.close(), polls).await;
                }
                4 => {
                    let name = folder.path().join("immutable");
                    let mut sink = ImmutableFileBuilder::new(&name).build_sink().await?;
                    give_up(sink.write_all(&buf), polls).await;
                    give_up(sink.seal(), polls).await;
                    fs::remove_file(&name)?;
                }
                _ => {
                    let file = Rc::new(DmaFile::open(&path).await?);
                    let requests = stream::iter((0..50).map(|at| (at * 4096, 100)));
                    let mut many = file.read_many(
                        requests,
                        MergedBufferLimit::NoMerging,
                        ReadAmplificationLimit::default(),
                    );
                    give_up(many.next(), polls).await;
                }
            }
        }
        settle(before).await;
    }
    Ok(())
}

/// Gives `late` up while the blocking threads are busy, closes the file, and writes to it anew:
/// what was given up must not come to it later, and the close must not wait for the threads.
fn takes_no_effect_later(late: impl AsyncFn(&DmaFile, &DmaFile)) {
    run(async {
        let folder = folder();
        let path = folder.path().join("file");
        let other = folder.path().join("other");
        filled(&other, 8192);
        let open = async || {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true);
            options.dma_open(&path).await
        };
        let (begun, has_begun) = std::sync::mpsc::channel();
        let (go_on, told) = std::sync::mpsc::channel::<()>();
        let busy = glommio::executor().spawn_blocking(move || {
            begun.send(()).expect("the test waits");
            told.recv().expect("the test goes on");
        });
        let mut busy = pin!(busy);
        assert!(poll_once(&mut busy).await.is_none());
        has_begun.recv().expect("a thread comes to it");

        let (file, from) = (open().await?, DmaFile::open(&other).await?);
        late(&file, &from).await;
        // If it had begun it would be over when both are closed.
        file.close().await?;
        from.close().await?;

        let file = open().await?;
        let buffer = full_of(7, &file).pop().expect("there is one");
        let bytes = buffer.len();
        file.write_at(buffer, 0).await?;
        file.fdatasync().await?;
        go_on.send(()).expect("the call waits");
        busy.await;
        // What was queued before would have been done by now.
        glommio::executor().spawn_blocking(|| ()).await;
        assert_eq!(fs::read(&path)?, vec![7; bytes]);
        file.close().await
    });
}

#[run_test(in_child_with(&[("GLOMMIO_RING_WITHOUT", "truncate")]))]
fn a_truncate_that_was_given_up_does_not_cut_what_was_written_since() {
    takes_no_effect_later(async |file, _| {
        // A thread may be so quick that there is nothing to give up.
        for _ in 0..100 {
            if poll_once(file.truncate(0)).await.is_none() {
                break;
            }
        }
    });
}

#[test]
fn a_copy_that_was_given_up_does_not_overwrite_what_was_written_since() {
    takes_no_effect_later(async |file, from| {
        let copy = file.copy_file_range_aligned(from, 0, 8192, 0);
        assert!(poll_once(copy).await.is_none());
    });
}

/// The executor is there, and may never run again.
#[run_test(in_child)]
fn a_file_that_is_dropped_outside_of_run_is_closed_on_the_spot() {
    let folder = folder();
    let [path, fifo] = ["file", "fifo"].map(|name| folder.path().join(name));
    filled(&path, 100_000);
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("the disk has them");
    let executor = LocalExecutor::default();
    executor.run(async {}); // what it opens by itself
    let open = async || {
        let directory = Directory::open(folder.path()).await?;
        let direct = DmaFile::open(&path).await?;
        let buffered = BufferedFile::open(&path).await?;
        let file = DmaFile::open(&path).await?;
        let mut reader = DmaStreamReaderBuilder::new(file).build();
        reader.read_exact(&mut [0; 10]).await?; // the one block that there is
        let writer = DmaStreamWriterBuilder::new(direct.dup()?).build();
        let mut options = OpenOptions::new();
        let pipe = options.read(true).write(true).buffered_open(&fifo).await?;
        Result::Ok((directory, direct, buffered, reader, writer, pipe))
    };
    let before = descriptors();
    let files = executor.run(open()).expect("they are opened");
    assert!(descriptors() >= before + 6);
    drop(files);
    assert_eq!(descriptors(), before);

    // One whose operation was given up, of which the kernel has not heard.
    let file = executor.run(async {
        let (.., pipe) = open().await.expect("they are opened");
        let mut read = Box::pin(pipe.read_at(0, 10));
        assert!(poll_once(&mut read).await.is_none());
        sleep(Duration::from_millis(5)).await;
        drop(read);
        pipe
    });
    drop(file);
    executor.run(async {
        settle(before).await;
    });
}
