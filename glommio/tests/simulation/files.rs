//! Files on simulated disks: what the library does with them, and what a power cut leaves.

use std::os::unix::fs::PermissionsExt;

use glommio::io::{
    create_dir_all, hard_link, read_link, remove, remove_dir_all, rename, set_permissions, stat,
    symlink,
};
use glommio::simulation::{self, Disk, FailureKind, Fault, Simulation};
use glommio::time;

use super::{MILLISECOND, SECOND, power_cut};
use crate::common::prelude::*;

type Result<T = ()> = std::result::Result<T, GlommioError<()>>;

fn errno<T: std::fmt::Debug>(result: Result<T>) -> Option<i32> {
    result.expect_err("it fails").raw_os_error()
}

#[glommio::test(simulated)]
async fn what_is_written_is_read() -> Result {
    let start = time::now();
    let mut options = OpenOptions::new();
    let file = options
        .create(true)
        .read(true)
        .write(true)
        .buffered_open("/buffered")
        .await?;
    assert_eq!(file.write_at(vec![7; 10_000], 0).await?, 10_000);
    file.fdatasync().await?;
    assert!(time::now() > start, "a sync takes some time");
    let read = file.read_at(9_000, 5_000).await?;
    assert_eq!(*read, [7; 1_000]);
    file.truncate(5).await?;
    assert_eq!(file.file_size().await?, 5);
    file.close().await?;

    let file = DmaFile::create("/direct").await?;
    let mut buffer = file.alloc_dma_buffer(8192);
    buffer.as_bytes_mut().fill(3);
    file.write_at(buffer, 4096).await?;
    file.fdatasync().await?;
    file.close().await?;
    let file = DmaFile::open("/direct").await?;
    let clone = file.clone();
    drop(file);
    let read = clone.read_at(4000, 200).await?;
    assert_eq!(read[..96], [0; 96]);
    assert_eq!(read[96..], [3; 104]);
    clone.close().await?;
    assert_eq!(stat("/direct").await?.file_size, 12_288);
    Ok(())
}

#[glommio::test(simulated)]
async fn streams_carry_what_they_are_given() -> Result {
    let file = DmaFile::create("/stream").await?;
    let mut writer = DmaStreamWriterBuilder::new(file).build();
    let data: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
    writer.write_all(&data).await?;
    writer.close().await?;
    let file = DmaFile::open("/stream").await?;
    let mut reader = DmaStreamReaderBuilder::new(file).build();
    let mut read = Vec::new();
    reader.read_to_end(&mut read).await?;
    assert!(read == data);
    reader.close().await?;
    Ok(())
}

#[glommio::test(simulated)]
async fn names_are_as_on_linux() -> Result {
    create_dir_all("/a/b/c").await?;
    for name in ["one", "two", "three"] {
        let file = BufferedFile::create(format!("/a/{name}")).await?;
        file.close().await?;
    }
    assert_eq!(
        errno(BufferedFile::open("/a/four").await),
        Some(libc::ENOENT)
    );
    assert_eq!(errno(remove("/a/b").await), Some(libc::EISDIR));
    rename("/a/one", "/a/b/one").await?;
    hard_link("/a/two", "/a/two again").await?;
    symlink("/a/two", "/link").await?;
    assert_eq!(read_link("/link").await?.to_str(), Some("/a/two"));
    assert_eq!(stat("/link").await?.file_size, 0);
    set_permissions("/a/two", std::fs::Permissions::from_mode(0o600)).await?;
    let directory = Directory::open("/a").await?;
    let mut names = Vec::new();
    let mut entries = directory.read_dir()?;
    while let Some(entry) = futures_lite::StreamExt::next(&mut entries).await {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    assert_eq!(names, ["b", "three", "two", "two again"]);
    directory.sync().await?;
    directory.close().await?;
    remove_dir_all("/a").await?;
    assert_eq!(errno(stat("/a").await), Some(libc::ENOENT));
    // A relative path begins at the root.
    let file = BufferedFile::create("relative").await?;
    file.close().await?;
    assert!(stat("/relative").await.is_ok());
    Ok(())
}

#[run_test]
fn disks_belong_to_their_nodes_and_stay() {
    let sizes = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&sizes);
    Simulation::builder()
        .node("a", 1, move || {
            let seen = Rc::clone(&seen);
            async move {
                let mut options = OpenOptions::new();
                let options = options.create(true).append(true).write(true).read(true);
                let file = options.buffered_open("/data").await?;
                let size = file.file_size().await?;
                seen.borrow_mut().push(size);
                file.write_at(vec![1; 100], 0).await?;
                file.close().await?;
                std::future::pending::<Result>().await
            }
        })
        .client("b", || async {
            assert_eq!(errno(BufferedFile::open("/data").await), Some(libc::ENOENT));
            sleep(60 * SECOND).await;
        })
        .restarts("a", 10 * SECOND..11 * SECOND, SECOND..2 * SECOND)
        .run()
        .expect("nothing fails");
    let sizes = sizes.borrow();
    assert!(sizes.len() >= 5);
    assert!(
        sizes.windows(2).all(|two| two[0] + 100 == two[1]),
        "{sizes:?}"
    );
}

/// Appends numbers and confirms each; after a power cut all that were confirmed must be there.
async fn append(confirmed: Rc<Cell<u64>>, syncs: bool) -> Result {
    let mut options = OpenOptions::new();
    let file = options
        .create(true)
        .read(true)
        .write(true)
        .buffered_open("/log")
        .await?;
    let directory = Directory::open("/").await?;
    directory.sync().await?;
    directory.close().await?;
    let bytes = file.read_at(0, 1 << 20).await?;
    let mut next = 0;
    for record in bytes.chunks_exact(8) {
        let number = u64::from_le_bytes(record.try_into().expect("there are eight"));
        // Behind the last that was confirmed anything may be left of what was begun.
        if number != next {
            break;
        }
        next += 1;
    }
    assert!(
        next >= confirmed.get(),
        "{next} of {} confirmed are there",
        confirmed.get()
    );
    simulation::note(format!("{next} records are there"));
    loop {
        next += 1;
        file.write_at((next - 1).to_le_bytes().to_vec(), 8 * (next - 1))
            .await?;
        if syncs {
            file.fdatasync().await?;
        }
        confirmed.set(next);
        sleep(MILLISECOND).await;
    }
}

fn append_with_power_cuts(seed: u64, syncs: bool) -> std::result::Result<u64, simulation::Failure> {
    let confirmed = Rc::new(Cell::new(0));
    let count = Rc::clone(&confirmed);
    Simulation::builder()
        .seed(seed)
        .disk(|disk| disk.lost_unsynced(true).torn_writes(true))
        .node("log", 1, move || append(Rc::clone(&count), syncs))
        .restarts("log", 10 * MILLISECOND..SECOND, MILLISECOND..SECOND)
        .run_for(10 * SECOND)?;
    Ok(confirmed.get())
}

#[test]
fn what_is_synced_survives_power_cuts_and_what_is_not_is_found_out() {
    let mut lost = 0;
    let seeds = rounds(6);
    for seed in 0..seeds as u64 {
        let _watchdog = watchdog();
        let confirmed = append_with_power_cuts(seed, true).expect("nothing is lost");
        assert!(confirmed > 500, "{confirmed}");
        if let Err(failure) = append_with_power_cuts(seed, false) {
            let FailureKind::Panic(text) = failure.kind() else {
                panic!("{failure}");
            };
            assert!(text.contains("confirmed are there"), "{text}");
            let again = append_with_power_cuts(seed, false).expect_err("it fails again");
            assert_eq!(again.digest(), failure.digest());
            lost += 1;
        }
    }
    assert!(lost > seeds * 3 / 4, "{lost} of {seeds}");
}

#[run_test]
fn full_and_failing_disks_say_so() {
    Simulation::builder()
        .disk(|disk| disk.full_at(100 << 10))
        .client("client", || async {
            let file = BufferedFile::create("/full").await?;
            let fits = 100 << 10;
            assert_eq!(file.write_at(vec![1; 2 * fits], 0).await?, fits);
            assert_eq!(
                errno(file.write_at(vec![1], fits as u64).await),
                Some(libc::ENOSPC)
            );
            file.close().await
        })
        .run()
        .expect("nothing else fails");
    let failed = Rc::new(Cell::new(0));
    let count = Rc::clone(&failed);
    Simulation::builder()
        // A random one has so few errors now and then.
        .seed(7)
        .disk(|disk| disk.errors(0.1).short(0.5))
        .client("client", move || {
            let count = Rc::clone(&count);
            async move {
                let file = BufferedFile::create("/failing").await?;
                for n in 0..100 {
                    match file.write_at(vec![n; 1000], u64::from(n) * 1000).await {
                        Ok(written) => assert!(0 < written && written <= 1000),
                        Err(error) => {
                            assert_eq!(error.raw_os_error(), Some(libc::EIO));
                            count.set(count.get() + 1);
                        }
                    }
                }
                file.close().await
            }
        })
        .run()
        .expect("nothing else fails");
    assert!((3..40).contains(&failed.get()), "{}", failed.get());
}

/// A write that takes 10 ms, 5 ms after which the power is cut; then what is there in its place, sector
/// by sector.
fn cut_within_a_write(seed: u64, is_direct: bool, torn: bool) -> Vec<u8> {
    let found = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&found);
    let cut = power_cut("disk", SECOND);
    Simulation::builder()
        .seed(seed)
        .disk(|disk| {
            disk.lost_unsynced(torn)
                .torn_writes(torn)
                .write_latency(10 * MILLISECOND..=10 * MILLISECOND)
        })
        .node("disk", 1, move || {
            let seen = Rc::clone(&seen);
            async move {
                let mut options = OpenOptions::new();
                options.create(true).read(true).write(true);
                if simulation::elapsed() > SECOND {
                    let file = options.buffered_open("/file").await?;
                    seen.replace(file.read_at(0, BYTES).await?.to_vec());
                    return file.close().await;
                }
                let file = options.dma_open("/file").await?;
                file.write_at(filled(&file, 0), 0).await?;
                file.fdatasync().await?;
                let directory = Directory::open("/").await?;
                directory.sync().await?;
                directory.close().await?;
                sleep(SECOND - simulation::elapsed()).await;
                if is_direct {
                    file.write_at(filled(&file, 1), 0).await?;
                } else {
                    let file = options.buffered_open("/file").await?;
                    sleep(Duration::from_nanos(1)).await;
                    file.write_at(vec![1; BYTES], 0).await?;
                }
                unreachable!("the power is cut before");
            }
        })
        .at(SECOND + 5 * MILLISECOND, cut)
        .run_for(10 * SECOND)
        .expect("nothing fails");
    let found = found.take();
    assert_eq!(found.len(), BYTES);
    let sectors = found.chunks(512);
    assert!(
        sectors
            .clone()
            .all(|it| it.iter().all(|byte| *byte == it[0]))
    );
    sectors.map(|it| it[0]).collect()
}

const BYTES: usize = 16 << 10;

fn filled(file: &DmaFile, byte: u8) -> glommio::io::DmaBuffer {
    let mut buffer = file.alloc_dma_buffer(BYTES);
    buffer.as_bytes_mut().fill(byte);
    buffer
}

#[run_test]
fn a_write_in_flight_at_a_power_cut_is_there_or_not_or_torn_at_sectors() {
    for is_direct in [true, false] {
        let (mut none, mut all, mut torn) = (0, 0, 0);
        for seed in 0..100 {
            let found = cut_within_a_write(seed, is_direct, true);
            match found.iter().filter(|it| **it == 1).count() {
                0 => none += 1,
                32 => all += 1,
                _ => torn += 1,
            }
            assert_eq!(found, cut_within_a_write(seed, is_direct, true));
            let whole = cut_within_a_write(seed, is_direct, false);
            assert!(
                whole.iter().all(|it| *it == whole[0]),
                "not torn: {whole:?}"
            );
        }
        assert!(none > 5 && all > 0 && torn > 5, "{none}, {all}, {torn}");
    }
}

/// Without a torn or lost write, only what was in flight is uncertain.
#[run_test]
fn an_operation_in_flight_may_have_happened_though_its_end_was_not_seen() {
    let mut outcomes = [0, 0];
    for seed in 0..40 {
        let whole = cut_within_a_write(seed, true, false);
        outcomes[usize::from(whole[0])] += 1;
    }
    assert!(outcomes.iter().all(|count| *count > 5), "{outcomes:?}");
}

/// What it was for is lost, and a later one that succeeds does not bring it back.
#[test]
fn a_close_hears_of_a_failed_sync_that_was_given_up() {
    let slow = |disk: Disk| disk.sync_latency(10 * MILLISECOND..=10 * MILLISECOND);
    let fails = |rate| Fault::DiskChange {
        node: "client".into(),
        disk: Disk::default().errors(rate),
    };
    Simulation::builder()
        .disk(slow)
        .client("client", move || async move {
            let file = DmaFile::create("/stream").await?;
            let mut writer = DmaStreamWriterBuilder::new(file).build();
            writer.write_all(&[7; 1000]).await?;
            writer.flush().await?;
            simulation::inject(9 * MILLISECOND, fails(1.0));
            simulation::inject(11 * MILLISECOND, fails(0.0));
            let given_up = poll_once(writer.sync()).await;
            assert!(given_up.is_none(), "it takes 10 ms");
            sleep(5 * MILLISECOND).await;
            let closed = writer.close().await;
            closed.expect_err("the data is not durable");
            io::Result::Ok(())
        })
        .run()
        .expect("nothing else fails");
}
