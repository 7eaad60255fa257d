//! Files that are changed behind the log's back.
//!
//! `TIMELOG_OPENINGS=20000 cargo test --release -p timelog --features durable --lib damage` opens as
//! many damaged logs.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use super::super::disk::Folder;
use super::super::format::{MANIFEST, PAGE_BYTES, UNIT, is_log_file};
use super::super::simulation::Disk;
use super::super::{Error, Log};
use super::{open, rows, run, settle, small};
use crate::{Raw, TimeUnit, Ts};

/// The name of the `number`th file of the write-ahead log.
fn wal_name(number: u64) -> String {
    format!("wal-{number:016x}")
}

/// Whether an error names this file.
fn names(error: &Error, file: &str) -> bool {
    match error {
        Error::Corrupt { path, .. } | Error::Format { path, .. } => {
            *path == Path::new("simulated").join(file)
        }
        _ => false,
    }
}

type Files = BTreeMap<String, Vec<u8>>;

fn files_of(disk: &Disk) -> Files {
    let names = disk.all_names().into_iter();
    names
        .map(|name| (name.clone(), disk.edit(&name, |bytes| bytes.clone())))
        .collect()
}

/// A log in several lives, and how it was before.
struct Subject {
    disk: Rc<Disk>,
    rows: Vec<(Ts, u64)>,
    /// Without the group that was in flight last.
    before_last: Vec<(Ts, u64)>,
    is_closed: bool,
    older: Vec<Files>,
}

/// With checkpoints that have deletes, files of the write-ahead log that none covers, and one that has
/// grown.
fn subject(seed: u64, is_closed: bool) -> Subject {
    let disk = Disk::new(seed);
    let mut older = Vec::new();
    for life in 0..3i64 {
        run(async {
            let (log, _) = open(&disk, small()).await.unwrap();
            for round in 0..10 {
                let batch =
                    (0..100).map(|row| (row * 7 % 100 + (10 * life + round) * 20, row as u64));
                drop(log.extend(batch).unwrap());
                drop(log.delete(round * 20..round * 20 + 3).unwrap());
                log.sync().await.unwrap();
                if round % 10 == seed as i64 % 10 {
                    settle(&log).await;
                }
            }
            drop(log.raise_floor(10).unwrap());
            settle(&log).await;
            log.close().await.unwrap();
        });
        older.push(files_of(&disk));
    }
    let (rows, before_last) = run(async {
        let (log, _) = open(&disk, small()).await.unwrap();
        settle(&log).await;
        // What has happened since to the file that is written to no other one knows.
        let mut files = files_of(&disk);
        files.retain(|name, _| is_closed || name == MANIFEST);
        older.push(files);
        let batch = (0..2000).map(|row| (1000 + row, 0));
        log.extend(batch).unwrap().await.unwrap();
        for ts in 0..6 {
            // No file outgrows its size.
            settle(&log).await;
            log.append(5000 + ts, seed).unwrap().await.unwrap();
        }
        settle(&log).await;
        let before_last = rows(&log);
        log.append(6000, seed).unwrap().await.unwrap();
        let all = rows(&log);
        if is_closed {
            log.close().await.unwrap();
        }
        (all, before_last)
    });
    Subject {
        disk: disk.after_kill(seed),
        rows,
        before_last,
        is_closed,
        older,
    }
}

impl Subject {
    /// Opens it after a change of a file: all is there, or the file is named.
    fn damaged(&self, file: &str, what: &str, damage: impl FnOnce(&Disk)) -> bool {
        let disk = self.disk.after_kill(1);
        damage(&disk);
        // An executor for each: what is still open ends with it.
        match run(open(&disk, small())) {
            Ok((log, _)) => {
                let found = rows(&log);
                // Of what was not closed, the last group looks as if it had been in flight.
                let is_cut =
                    !self.is_closed && file.starts_with("wal") && found == self.before_last;
                assert!(
                    found == self.rows || is_cut,
                    "{file}, {what}: {} rows",
                    found.len()
                );
                false
            }
            Err(error) => {
                // A manifest of another log, or of another time, lists files that are not there, or
                // others than are there.
                let is_other = file == MANIFEST && matches!(error, Error::Corrupt { .. });
                // A manifest that is older than another file is the one to name.
                let is_older = names(&error, MANIFEST) && error.to_string().contains(file);
                assert!(
                    names(&error, file) || is_other || is_older,
                    "{file}, {what}: {error}"
                );
                true
            }
        }
    }
}

/// Makes the checksum of a file right again.
fn seal(bytes: &mut Vec<u8>) {
    if bytes.starts_with(b"timelog") {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let (lines, _) = text.rsplit_once("\nend ").unwrap();
        let checksum = crc32fast::hash(format!("{lines}\n").as_bytes());
        *bytes = format!("{lines}\nend {checksum:08x}\n").into_bytes();
        bytes.resize(bytes.len().next_multiple_of(UNIT), b'\n');
    } else {
        let checksum = crc32fast::hash(&bytes[..UNIT - 4]);
        bytes[UNIT - 4..UNIT].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// Each file of a closed and of an unclosed log in each manner, as many as are asked for.
#[test]
fn a_damaged_file_is_named_or_changes_nothing() {
    let openings = match std::env::var("TIMELOG_OPENINGS") {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => 100,
    };
    let (mut opened, mut refused) = (0, 0);
    let mut seed = 0;
    // Of all pairs of files, in a short run, some.
    let pairs = if openings < 1000 { 5 } else { 1 };
    while opened < openings {
        let other = files_of(&subject(seed + 100, true).disk);
        for is_closed in [true, false] {
            let subject = subject(seed, is_closed);
            let files = files_of(&subject.disk);
            assert!(
                files.keys().any(|it| it.starts_with("checkpoint")),
                "{:?}",
                files.keys()
            );
            assert!(files.keys().filter(|it| it.starts_with("wal")).count() > 1);
            let sum: usize = files.values().map(|bytes| 2 * bytes.len() / 64).sum();
            // In a short run, of all places as many as fit.
            let step = (2 * sum).div_ceil(openings).max(1);
            let mut tally = |is_refused: bool| {
                opened += 1;
                refused += usize::from(is_refused);
            };
            for (file, bytes) in &files {
                let places = (0..bytes.len())
                    .step_by(64)
                    .skip(seed as usize % step)
                    .step_by(step);
                for at in places {
                    let bit = (at / 64 + seed as usize) % 8;
                    tally(
                        subject.damaged(file, &format!("bit {bit} of {at}"), |disk| {
                            disk.edit(file, |bytes| bytes[at] ^= 1 << bit);
                        }),
                    );
                    tally(subject.damaged(file, &format!("cut at {at}"), |disk| {
                        disk.edit(file, |bytes| bytes.truncate(at));
                    }));
                }
                if !is_log_file(file) && file != MANIFEST {
                    continue;
                }
                tally(subject.damaged(file, "missing", |disk| disk.forget(file)));
                let copies = files.keys().filter(|name| is_log_file(name));
                for copy in copies.step_by(pairs) {
                    tally(subject.damaged(copy, &format!("a copy of {file}"), |disk| {
                        disk.put(copy, bytes)
                    }));
                }
                for copy in [
                    "wal-0000000000000999",
                    "checkpoint-0000000000000000-0000000000000999",
                ] {
                    tally(subject.damaged(copy, &format!("a copy of {file}"), |disk| {
                        disk.put(copy, bytes)
                    }));
                }
                tally(subject.damaged(file, "another version", |disk| {
                    disk.edit(file, |bytes| {
                        bytes[8] = if file == MANIFEST { b'2' } else { 2 };
                        seal(bytes);
                    });
                }));
            }
            for older in &subject.older {
                let older = older.iter().filter(|(name, _)| *name != "LOCK");
                for (file, bytes) in older.step_by(pairs) {
                    tally(subject.damaged(file, "an older copy", |disk| disk.put(file, bytes)));
                }
            }
            for (file, bytes) in &other {
                tally(subject.damaged(file, "from another log", |disk| disk.put(file, bytes)));
            }
        }
        seed += 1;
    }
    println!("{opened} openings, {refused} refused");
    assert!(refused > opened / 3);
}

/// All files go, and those of another log come: nothing of that was.
#[test]
fn files_of_two_logs_are_not_opened_as_one() {
    let (subject, other) = (subject(1, true), subject(2, true));
    let disk = subject.disk.after_kill(1);
    for (name, bytes) in files_of(&other.disk) {
        if !disk.all_names().contains(&name) {
            disk.put(&name, &bytes);
        }
    }
    let opened = run(open(&disk, small()));
    assert!(opened.is_ok() || matches!(opened, Err(Error::Corrupt { .. })));
    if let Ok((log, _)) = opened {
        assert_eq!(rows(&log), subject.rows);
    }
}

/// Each way to have less without a word that there was.
#[test]
fn a_closed_log_whose_newest_file_is_cut_or_missing_is_refused() {
    let disk = Disk::new(1);
    run(async {
        let config = || small().wal_file_bytes(64 << 10);
        for life in 0..3 {
            let (log, _) = open(&disk, config()).await.unwrap();
            let rows = (0..1000).map(|row| (life * 1000 + row, 0));
            log.extend(rows).unwrap().await.unwrap();
            log.close().await.unwrap();
        }
    });
    let files = files_of(&disk);
    for (file, bytes) in files.iter().filter(|(name, _)| name.starts_with("wal")) {
        for damage in [true, false] {
            let disk = disk.after_kill(1);
            if damage {
                disk.forget(file);
            } else {
                disk.edit(file, |it| it.truncate(bytes.len() - UNIT));
            }
            let error = run(open(&disk, small())).expect_err("it was there");
            assert!(names(&error, file), "{error}");
        }
    }
}

/// It has no space for a block that would say where it ends.
#[test]
fn a_closed_log_whose_newest_file_outgrew_its_size_has_no_torn_end() {
    let disk = Disk::new(1);
    run(async {
        let (log, _) = open(&disk, small()).await.unwrap();
        let rows = (0..20_000).map(|ts| (ts, 0));
        log.extend(rows).unwrap().await.unwrap();
        log.close().await.unwrap();
    });
    let files = files_of(&disk);
    let grown = files.iter().max_by_key(|(_, bytes)| bytes.len());
    let (file, bytes) = grown.unwrap();
    assert!(bytes.len() > 20_000 * 16, "{file}");
    for at in [UNIT + 50, bytes.len() / 2] {
        let disk = disk.after_kill(1);
        disk.edit(file, |bytes| bytes[at] ^= 1);
        let error = run(open(&disk, small())).expect_err("it is not whole");
        assert!(names(&error, file), "{error}");
    }
}

#[test]
fn damage_in_the_last_file_is_named_unless_it_is_at_the_end() {
    for is_closed in [false, true] {
        damage_last_file(is_closed);
    }
}

/// If the log was closed, its manifest says where it ended.
fn damage_last_file(is_closed: bool) {
    let disk = Disk::new(1);
    run(async {
        let config = small().wal_file_bytes(64 << 10);
        let (log, _) = open(&disk, config.clone()).await.unwrap();
        // The first file has the space of one group.
        log.append(0, 0).unwrap().await.unwrap();
        settle(&log).await;
        for ts in 1..5 {
            log.append(ts, 0).unwrap().await.unwrap();
        }
        // No manifest is written after the last group, which would say that it was durable.
        settle(&log).await;
        log.append(5, 0).unwrap().await.unwrap();
        if is_closed {
            log.close().await.unwrap();
        }
    });
    let file = wal_name(2);
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
        let file = wal_name(2);
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
        .find(|it| it.starts_with("checkpoint"))
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
fn values_of_another_type_of_the_same_width_are_refused() {
    let disk = subject(1, true).disk;
    let error = run(async {
        let folder = Folder::simulated(Rc::clone(&disk));
        Log::<i64>::open_in(folder, small(), None)
            .await
            .expect_err("as wide")
    });
    assert!(matches!(error, Error::Format { .. }), "{error}");
    assert!(
        error.to_string().contains("u64 of 8 bytes, not i64 of 8"),
        "{error}"
    );
    let memory = crate::Config::default().unit(TimeUnit::Seconds);
    let error = run(open(&disk, small().memory(memory))).expect_err("another unit");
    assert!(error.to_string().contains("nanos, not seconds"), "{error}");
    // For programs that know of no type.
    run(async {
        let folder = Folder::simulated(Rc::clone(&disk));
        let (log, _) = Log::<Raw>::open_in(folder, small(), None).await.unwrap();
        let snapshot = log.snapshot();
        assert!(snapshot.count(..) > 1000);
        assert!(snapshot.range(..).all(|(_, value)| value.0.len() == 8));
    });
}

/// As much as there is, and what is not, by its place.
#[test]
fn what_is_whole_of_a_damaged_log_is_salvaged() {
    use super::super::salvage::salvage_in;
    let subject = subject(1, true);
    let whole = |disk: &Rc<Disk>| {
        let folder = Folder::simulated(Rc::clone(disk));
        let salvaged = run(salvage_in::<u64>(&folder)).unwrap();
        let rows = salvaged.snapshot.range(..).map(|(ts, value)| (ts, *value));
        (rows.collect::<Vec<_>>(), salvaged.losses)
    };
    let (rows, losses) = whole(&subject.disk);
    assert_eq!(rows, subject.rows);
    assert!(losses.is_empty(), "{losses:?}");
    for (file, bytes) in files_of(&subject.disk) {
        if file == "LOCK" {
            continue;
        }
        let used = bytes
            .iter()
            .rposition(|byte| *byte != 0 && *byte != b'\n')
            .unwrap();
        let disk = subject.disk.after_kill(1);
        disk.edit(&file, |bytes| bytes[used / 2] ^= 1);
        let (rows, losses) = whole(&disk);
        let is_refused = run(open(&disk, small())).is_err();
        assert_eq!(is_refused, !losses.is_empty(), "{file}: {losses:?}");
        if file == MANIFEST {
            assert_eq!(rows, subject.rows, "it is rebuilt from the names of files");
        }
        if !is_refused || file == MANIFEST {
            continue;
        }
        assert!(losses.iter().all(|it| names(it, &file)), "{losses:?}");
        assert!(!rows.is_empty());
    }
}
