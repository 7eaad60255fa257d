//! Descriptors of files that are closed while operations on them wait, or are in flight: the number
//! belongs to no other file before these are over.

use glommio::io::OwnedDmaFile;

use super::*;

const BYTES: usize = 4096;

/// Starts to write a page of sevens, and forgets it: it waits for the end of the turn.
async fn forget_a_write(file: &DmaFile) {
    let mut buffer = file.alloc_dma_buffer(BYTES);
    buffer.as_bytes_mut().fill(7);
    let mut write = Box::pin(file.write_at(buffer, 0));
    assert!(poll_once(&mut write).await.is_none());
    forget(write);
}

fn is_open(number: RawFd) -> bool {
    Path::new(&format!("/proc/self/fd/{number}")).exists()
}

/// Waits until the file has been written.
async fn written(path: &Path) {
    while fs::read(path).expect("it is there") != [7; BYTES] {
        sleep(Duration::from_micros(100)).await;
    }
}

#[run_test(run_in_child)]
async fn a_forgotten_write_goes_to_its_own_file_though_that_is_dropped() {
    for folder in folders() {
        let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
        let before = descriptors();
        for round in 0..3 {
            let file = DmaFile::create(&old).await?;
            forget_a_write(&file).await;
            match round {
                // On the spot.
                0 => drop(OwnedDmaFile::from(file)),
                1 => {
                    let owned = OwnedDmaFile::from(file);
                    let dropped = std::thread::spawn(|| drop(owned)).join();
                    dropped.expect("dropping does not panic");
                }
                _ => drop(file),
            }
            // They get the lowest numbers that are free.
            let others: Vec<_> = (0..3)
                .map(|_| fs::File::create(&new).expect("the disk has room"))
                .collect();
            written(&old).await;
            assert!(fs::read(&new)?.is_empty(), "round {round}");
            drop(others);
            fs::remove_file(&old)?;
            fs::remove_file(&new)?;
        }
        // What is closed in the background.
        while descriptors() > before {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

#[run_test(in_folder)]
async fn a_file_is_opened_in_its_directory_though_the_handle_is_gone(folder: TempDir) {
    let [old, other] = ["old", "other"].map(|name| folder.path().join(name));
    fs::create_dir(&other)?;
    let directory = Directory::create(&old).await?;
    let mut create = Box::pin(directory.create_file("file"));
    assert!(poll_once(&mut create).await.is_none());
    forget(create);
    drop(directory);
    let _others: Vec<_> = (0..3)
        .map(|_| fs::File::open(&other).expect("it is there"))
        .collect();
    while !old.join("file").exists() {
        sleep(Duration::from_micros(100)).await;
    }
    assert!(!other.join("file").exists());
}

#[run_test(in_child)]
fn a_close_waits_for_what_was_given_up_and_closes_then() {
    // Where no other test gets the number.
    run(async {
        for (_folder, path) in places(folders()) {
            let file = DmaFile::create(&path).await?;
            let number = file.as_raw_fd();
            forget_a_write(&file).await;
            file.close().await?;
            assert!(!is_open(number));
            assert_eq!(fs::read(&path)?, [7; BYTES]);

            let file = BufferedFile::create(&path).await?;
            let number = file.as_raw_fd();
            for polls in 0..3 {
                give_up(file.write_at(vec![1; BYTES], 0), polls).await;
            }
            file.close().await?;
            assert!(!is_open(number));
            fs::remove_file(&path)?;
        }
        Ok(())
    });
}

#[run_test(run_in_child)]
async fn a_close_that_waits_and_is_given_up_closes_all_the_same() {
    for (_folder, path) in places(folders()) {
        filled(&path, 1 << 20);
        let before = descriptors();
        for polls in [0, 1, 1, 2, 3] {
            let file = DmaFile::create(&path).await?;
            forget_a_write(&file).await;
            give_up(file.close(), polls).await;
            filled(&path, 1 << 20);
            let file = DmaFile::open(&path).await?;
            let reader = DmaStreamReaderBuilder::new(file).build();
            give_up(reader.close(), polls).await;
            let mut writer = DmaStreamWriterBuilder::new(DmaFile::create(&path).await?)
                .with_buffer_size(BYTES)
                .build();
            writer.write_all(&[1; 3 * BYTES]).await?;
            drop(writer);
        }
        while descriptors() > before {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

#[run_test(in_child)]
fn an_executor_that_ends_closes_what_operations_had_open() {
    let (_folder, path) = place();
    let before = descriptors();
    for round in 0..4 {
        run(async {
            let file = DmaFile::create(&path).await?;
            forget_a_write(&file).await;
            match round {
                0 => drop(file),
                1 => drop(OwnedDmaFile::from(file)),
                2 => give_up(file.close(), 1).await,
                // Started by the end of the executor, too.
                _ => drop(Box::pin(file.close())),
            }
            Ok(())
        });
        assert_eq!(descriptors(), before, "round {round}");
    }
}

#[run_test(in_folder)]
async fn a_clone_count_is_of_handles_and_not_of_operations(folder: TempDir) {
    let file = DmaFile::create(folder.path().join("file")).await?;
    forget_a_write(&file).await;
    assert_eq!(file.strong_count(), 1);
    let file = file.try_take_last_clone().expect("there is one handle");
    file.close().await
}
