//! Files that are changed behind the log's back.

use std::path::Path;
use std::rc::Rc;

use fastrand::Rng;

use super::super::checkpoint::Stretch;
use super::super::disk::Folder;
use super::super::format::{PAGE_BYTES, UNIT};
use super::super::simulation::Disk;
use super::super::wal;
use super::super::{Config, Error, Log};
use super::{open, rows, run, settle, small};
use crate::{TimeUnit, Ts};

fn is_log_file(name: &str) -> bool {
    Stretch::of_name(name).is_some() || wal::number_of(name).is_some()
}

/// A log with checkpoints that have deletes, files of the write-ahead log that none covers, and a
/// last file without operations; and its rows.
fn full_disk() -> (Rc<Disk>, Vec<(Ts, u64)>) {
    let disk = Disk::new(1);
    let rows = run(async {
        let (log, _) = open(&disk, small()).await.unwrap();
        for round in 0..30 {
            let batch = (0..100).map(|row| (row * 7 % 100 + round * 20, row as u64));
            drop(log.extend(batch).unwrap());
            drop(log.delete(round * 20..round * 20 + 3).unwrap());
            log.sync().await.unwrap();
            if round % 10 == 0 {
                settle(&log).await;
            }
        }
        drop(log.raise_floor(10).unwrap());
        settle(&log).await;
        log.close().await.unwrap();
        let quiet = small().wal_file_bytes(32 << 10);
        let (log, _) = open(&disk, quiet.clone()).await.unwrap();
        drop(log.extend((0..100).map(|row| (1000 + row, 0))).unwrap());
        log.sync().await.unwrap();
        drop(log.delete(1000..1010).unwrap());
        log.close().await.unwrap();
        rows(&log_of(&disk, quiet).await)
    });
    (disk, rows)
}

/// Opens and closes it.
async fn log_of(disk: &Rc<Disk>, config: Config) -> Log<u64> {
    let (log, _) = open(disk, config).await.unwrap();
    log.clone().close().await.unwrap();
    log
}

/// Whether an error names this file.
fn names(error: &Error, file: &str) -> bool {
    match error {
        Error::Corrupt { path, .. } => path == Path::new("simulated").join(file).as_path(),
        _ => false,
    }
}

#[test]
fn a_flipped_bit_is_named_or_changes_nothing() {
    let (disk, whole) = full_disk();
    let mut random = Rng::with_seed(1);
    let (mut named, mut unseen) = (0, 0);
    let files: Vec<_> = disk.all_names();
    let files: Vec<_> = files.into_iter().filter(|it| is_log_file(it)).collect();
    assert!(
        files.iter().any(|it| it.starts_with("checkpoint")) && files.len() > 3,
        "{files:?}"
    );
    for file in files {
        // Of each unit that is not all zeros.
        let units: Vec<_> = disk.edit(&file, |bytes| {
            let units = bytes.chunks(UNIT).enumerate();
            let used = units.filter(|(_, unit)| unit.iter().any(|byte| *byte != 0));
            used.map(|(number, _)| number * UNIT).collect()
        });
        let heads = units
            .iter()
            .flat_map(|unit| [4, 17, 30, 50].map(|at| unit + at));
        let others = units.iter().flat_map(|unit| [60, 1500].map(|at| unit + at));
        for at in heads.chain(others) {
            let disk = disk.after_kill(1);
            disk.edit(&file, |bytes| bytes[at] ^= 1 << random.u8(..8));
            // An executor for each: what is still open ends with it.
            match run(open(&disk, small())) {
                Ok((log, _)) => {
                    assert_eq!(rows(&log), whole, "{file} at {at}");
                    unseen += 1;
                }
                Err(error) => {
                    assert!(names(&error, &file), "{file} at {at}: {error}");
                    named += 1;
                }
            }
        }
    }
    println!("{named} named, {unseen} in padding");
    assert!(named > 100);
}

#[test]
fn damage_in_the_last_file_is_named_unless_it_is_at_the_end() {
    for is_closed in [false, true] {
        damage_last_file(is_closed);
    }
}

/// If the log was closed, it says that it ended after its last group.
fn damage_last_file(is_closed: bool) {
    let disk = Disk::new(1);
    run(async {
        let config = small().wal_file_bytes(64 << 10);
        let (log, _) = open(&disk, config.clone()).await.unwrap();
        // The first file has the space of one group.
        log.append(0, 0).unwrap().await.unwrap();
        settle(&log).await;
        for ts in 1..6 {
            log.append(ts, 0).unwrap().await.unwrap();
        }
        if is_closed {
            log.close().await.unwrap();
        }
    });
    let file = wal::name(2);
    for block in 1..=5 {
        let disk = disk.after_kill(1);
        disk.edit(&file, |bytes| bytes[block * UNIT + 50] ^= 1);
        let offset = (block * UNIT) as u64;
        let opened = run(open(&disk, small()));
        if block == 5 && !is_closed {
            let (log, found) = opened.expect("it may have been torn");
            assert_eq!(rows(&log).len(), 5);
            assert_eq!(
                found.torn,
                Some((Path::new("simulated").join(&file), offset))
            );
        } else {
            let error = opened.expect_err("a block follows");
            let is_there = matches!(&error, Error::Corrupt { offset: at, .. } if *at == offset);
            assert!(is_there && names(&error, &file), "{error}");
        }
    }
}

/// Of groups that were in flight together the first is lost: those after it are cut off. If one of them was
/// written when the first was durable, it is damage.
#[test]
fn what_follows_a_torn_group_is_cut_off_unless_that_was_durable() {
    let (mut cut, mut named) = (0, 0);
    for calls in 1..12 {
        let disk = Disk::new(calls);
        let mut is_confirmed = false;
        run(disk.run(async {
            let config = small().wal_file_bytes(64 << 10).commit_bytes(100);
            let (log, _) = open(&disk, config).await.unwrap();
            // The first file has the space of one group.
            for ts in 0..2 {
                settle(&log).await;
                log.append(ts, 0).unwrap().await.unwrap();
            }
            settle(&log).await;
            disk.dies_after(calls);
            let mut commits: Vec<_> = (0..4)
                .map(|ts| log.extend(vec![(ts, 0); 8]).unwrap())
                .collect();
            commits.remove(0).await.unwrap();
            is_confirmed = true;
            loop {
                log.append(9, 0).unwrap().await.unwrap();
            }
        }));
        let disk = disk.after_kill(calls);
        let file = wal::name(2);
        let has_later = disk.edit(&file, |bytes| {
            let (first, later) = bytes[2 * UNIT..].split_at_mut(UNIT);
            first.fill(0);
            later.chunks(UNIT).any(|block| block[0] != 0)
        });
        let offset = 2 * UNIT as u64;
        match run(open(&disk, small())) {
            Ok((log, found)) => {
                assert_eq!(log.seq().0, 2);
                let torn = has_later.then(|| (Path::new("simulated").join(&file), offset));
                assert_eq!(found.torn, torn);
                cut += u32::from(has_later);
            }
            Err(Error::Corrupt { offset: at, .. }) => {
                assert!(is_confirmed && at == offset, "{at}");
                named += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(cut > 0 && named > 0, "{cut} cut, {named} named");
}

#[test]
fn a_missing_file_is_an_error_or_changes_nothing() {
    let (disk, whole) = full_disk();
    let mut missed = 0;
    for file in disk.all_names() {
        let disk = disk.after_kill(1);
        disk.forget(&file);
        match run(open(&disk, small())) {
            Ok((log, _)) => assert_eq!(rows(&log), whole, "without {file}"),
            Err(Error::Corrupt { .. }) => missed += 1,
            Err(other) => panic!("without {file}: {other}"),
        }
    }
    assert!(missed > 2, "{missed}");
}

#[test]
fn a_page_in_the_place_of_another_is_named() {
    let disk = Disk::new(1);
    run(async {
        let (log, _) = open(&disk, small()).await.unwrap();
        drop(log.extend((0..200_000).map(|ts| (ts, 0))).unwrap());
        log.checkpoint().await.unwrap();
        log.close().await.unwrap();
    });
    let names_of_disk = disk.all_names();
    let file = names_of_disk
        .iter()
        .find(|it| Stretch::of_name(it).is_some())
        .unwrap();
    disk.edit(file, |bytes| {
        let (first, second) = bytes[UNIT..].split_at_mut(PAGE_BYTES);
        first.swap_with_slice(&mut second[..PAGE_BYTES]);
    });
    let error = run(open(&disk, small())).expect_err("pages have numbers");
    let is_there = matches!(&error, Error::Corrupt { offset, .. } if *offset == UNIT as u64);
    assert!(is_there && names(&error, file), "{error}");
}

#[test]
fn files_of_another_type_are_named() {
    let (disk, _) = full_disk();
    let folder = Folder::simulated(Rc::clone(&disk));
    let error = run(Log::<u32>::open_in(folder, small())).expect_err("values are wider");
    assert!(matches!(error, Error::Format { .. }), "{error}");
    let memory = crate::Config::default().unit(TimeUnit::Seconds);
    let error = run(open(&disk, small().memory(memory))).expect_err("another unit");
    assert!(matches!(error, Error::Format { .. }), "{error}");
}

/// A file whose checksum is right says that it is of a later version.
#[test]
fn a_later_version_is_named() {
    let (disk, _) = full_disk();
    for file in disk.all_names().iter().filter(|it| is_log_file(it)) {
        disk.edit(file, |bytes| {
            bytes[8] = 3;
            let checksum = crc32fast::hash(&bytes[..UNIT - 4]);
            bytes[UNIT - 4..UNIT].copy_from_slice(&checksum.to_le_bytes());
        });
    }
    let error = run(open(&disk, small())).expect_err("it is not known");
    assert!(error.to_string().contains("version 3"), "{error}");
}
