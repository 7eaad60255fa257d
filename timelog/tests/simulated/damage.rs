//! Files that are changed behind the log's back.
//!
//! `TIMELOG_OPENINGS=20000 cargo test --release -p timelog --features simulation --test simulated damage` opens as
//! many damaged logs.

use std::path::Path;
use std::time::Duration;

use futures_lite::future::poll_once;
use glommio::simulation::Simulation;
use glommio::timer::sleep;
use timelog::durable::{Error, Log, salvage};
use timelog::{Raw, TimeUnit, Ts};

use super::{Files, MILLISECOND, PATH};
use super::{open, opened, read_files, rows, run, run_on, run_with, settle, small};

const UNIT: usize = 4096;
/// A page of a checkpoint.
const PAGE_BYTES: usize = 128 << 10;
const MANIFEST: &str = "MANIFEST";

/// The name of the `number`th file of the write-ahead log.
fn wal_name(number: u64) -> String {
    format!("wal-{number:016x}")
}

fn is_log_file(name: &str) -> bool {
    name.starts_with("wal") || name.starts_with("checkpoint")
}

/// Whether an error names this file.
fn names(error: &Error, file: &str) -> bool {
    match error {
        Error::Corrupt { path, .. } | Error::Format { path, .. } => {
            *path == Path::new(PATH).join(file)
        }
        _ => false,
    }
}

/// A log in several lives, and how it was before.
struct Subject {
    files: Files,
    rows: Vec<(Ts, u64)>,
    /// Without the group that was in flight last.
    before_last: Vec<(Ts, u64)>,
    is_closed: bool,
    older: Vec<Files>,
}

/// With checkpoints that have deletes, files of the write-ahead log that none covers, and one that has
/// grown.
fn subject(seed: u64, is_closed: bool) -> Subject {
    run(seed, move || make_subject(seed, is_closed))
}

async fn make_subject(seed: u64, is_closed: bool) -> Subject {
    let mut older = Vec::new();
    for life in 0..3i64 {
        let (log, _) = open(small()).await.unwrap();
        for round in 0..10 {
            let batch = (0..100).map(|row| (row * 7 % 100 + (10 * life + round) * 20, row as u64));
            drop(log.extend(batch).unwrap());
            drop(log.delete(round * 20..round * 20 + 3).unwrap());
            log.sync().await.unwrap();
            if round % 10 == seed as i64 % 10 {
                settle().await;
            }
        }
        drop(log.raise_floor(10).unwrap());
        settle().await;
        log.close().await.unwrap();
        older.push(read_files().await);
    }
    let (log, _) = open(small()).await.unwrap();
    settle().await;
    // What has happened since to the file that is written to no other one knows.
    let mut now = read_files().await;
    now.retain(|name, _| is_closed || name == MANIFEST);
    older.push(now);
    let batch = (0..2000).map(|row| (1000 + row, 0));
    log.extend(batch).unwrap().await.unwrap();
    for ts in 0..6 {
        // No file outgrows its size.
        settle().await;
        let rows = (0..100).map(|row| (5000 + 100 * ts + row, seed));
        log.extend(rows).unwrap().await.unwrap();
    }
    settle().await;
    let before_last = rows(&log);
    log.append(6000, seed).unwrap().await.unwrap();
    let rows = rows(&log);
    if is_closed {
        log.close().await.unwrap();
    }
    Subject {
        files: read_files().await,
        rows,
        before_last,
        is_closed,
        older,
    }
}

impl Subject {
    /// Opens it after a change of a file: all is there, or the file is named.
    fn damaged(&self, file: &str, what: &str, damage: impl FnOnce(&mut Files)) -> bool {
        let mut files = self.files.clone();
        damage(&mut files);
        match opened(&files) {
            Ok((found, _)) => {
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

fn put(files: &mut Files, file: &str, bytes: &[u8]) {
    files.insert(file.to_owned(), bytes.to_vec());
}

/// Changes what a file has.
fn edit<T>(files: &mut Files, file: &str, edit: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    edit(files.get_mut(file).expect("it is there"))
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
        let other = subject(seed + 100, true).files;
        for is_closed in [true, false] {
            let subject = subject(seed, is_closed);
            let files = &subject.files;
            assert!(
                files.keys().any(|it| it.starts_with("checkpoint")),
                "{:?}",
                files.keys()
            );
            assert!(files.keys().filter(|it| it.starts_with("wal")).count() > 1);
            let sum: usize = files.values().map(|bytes| 2 * bytes.len() / 64).sum();
            // In a short run, of all places as many as fit.
            let step = (2 * sum).div_ceil(openings).max(1);
            let mut tally = |file: &str, what: &str, damage: &dyn Fn(&mut Files)| {
                opened += 1;
                let is_refused = subject.damaged(file, what, damage);
                refused += usize::from(is_refused);
                is_refused
            };
            for (file, bytes) in files {
                let places = (0..bytes.len()).step_by(64);
                for at in places.skip(seed as usize % step).step_by(step) {
                    let bit = (at / 64 + seed as usize) % 8;
                    tally(file, &format!("bit {bit} of {at}"), &|files| {
                        edit(files, file, |bytes| bytes[at] ^= 1 << bit);
                    });
                    tally(file, &format!("cut at {at}"), &|files| {
                        edit(files, file, |bytes| bytes.truncate(at));
                    });
                }
                if !is_log_file(file) && file != MANIFEST {
                    continue;
                }
                tally(file, "missing", &|files| drop(files.remove(file)));
                let copies = files.keys().filter(|name| is_log_file(name));
                let unlisted = [
                    "wal-0000000000000999",
                    "checkpoint-0000000000000000-0000000000000999",
                ];
                for copy in copies.step_by(pairs).map(|it| &it[..]).chain(unlisted) {
                    let what = format!("a copy of {file}");
                    tally(copy, &what, &|files| put(files, copy, bytes));
                }
                tally(file, "another version", &|files| {
                    edit(files, file, |bytes| {
                        bytes[8] = if file == MANIFEST { b'2' } else { 2 };
                        seal(bytes);
                    });
                });
            }
            for older in &subject.older {
                let older = older.iter().filter(|(name, _)| *name != "LOCK");
                for (file, bytes) in older.step_by(pairs) {
                    tally(file, "an older copy", &|files| put(files, file, bytes));
                }
            }
            for (file, bytes) in &other {
                let what = "from another log";
                let is_refused = tally(file, what, &|files| put(files, file, bytes));
                assert!(is_refused || file == "LOCK", "{file}, {what}");
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
    let mut both = other.files;
    both.extend(subject.files);
    match opened(&both) {
        Ok((found, _)) => assert_eq!(found, subject.rows),
        Err(error) => assert!(matches!(error, Error::Corrupt { .. }), "{error}"),
    }
}

/// Each way to have less without a word that there was.
#[test]
fn a_closed_log_whose_newest_file_is_cut_or_missing_is_refused() {
    let files = run(1, || async {
        for life in 0..3 {
            let (log, _) = open(small().wal_file_bytes(64 << 10)).await.unwrap();
            let rows = (0..1000).map(|row| (life * 1000 + row, 0));
            log.extend(rows).unwrap().await.unwrap();
            log.close().await.unwrap();
        }
        read_files().await
    });
    for file in files.keys().filter(|name| name.starts_with("wal")) {
        for is_missing in [true, false] {
            let mut files = files.clone();
            if is_missing {
                files.remove(file);
            } else {
                edit(&mut files, file, |bytes| bytes.truncate(bytes.len() - UNIT));
            }
            let error = opened(&files).expect_err("it was there");
            assert!(names(&error, file), "{error}");
        }
    }
}

/// It has no space for a block that would say where it ends.
#[test]
fn a_closed_log_whose_newest_file_outgrew_its_size_has_no_torn_end() {
    let files = run(1, || async {
        let (log, _) = open(small()).await.unwrap();
        let rows = (0..20_000).map(|ts| (ts, 0));
        log.extend(rows).unwrap().await.unwrap();
        log.close().await.unwrap();
        read_files().await
    });
    let grown = files.iter().max_by_key(|(_, bytes)| bytes.len());
    let (file, bytes) = grown.unwrap();
    assert!(bytes.len() > 20_000 * 16, "{file}");
    for at in [UNIT + 50, bytes.len() / 2] {
        let mut files = files.clone();
        edit(&mut files, file, |bytes| bytes[at] ^= 1);
        let error = opened(&files).expect_err("it is not whole");
        assert!(names(&error, file), "{error}");
    }
}

/// If the log was closed, its manifest says where it ended.
#[test]
fn damage_in_the_last_file_is_named_unless_it_is_at_the_end() {
    for is_closed in [false, true] {
        let files = run(1, move || async move {
            let (log, _) = open(small().wal_file_bytes(64 << 10)).await.unwrap();
            // The first file has the space of one group.
            for ts in 0..6 {
                log.append(ts, 0).unwrap().await.unwrap();
                // No manifest is written later, which would say what was durable.
                if ts < 2 {
                    settle().await;
                }
            }
            if is_closed {
                log.close().await.unwrap();
            }
            read_files().await
        });
        let file = wal_name(2);
        for block in 1..=5 {
            let mut files = files.clone();
            edit(&mut files, &file, |bytes| bytes[block * UNIT + 50] ^= 1);
            let offset = (block * UNIT) as u64;
            let opened = opened(&files);
            if block == 5 && !is_closed {
                let (found, recovery) = opened.expect("it may have been torn");
                assert_eq!(found.len(), 5);
                assert_eq!(recovery.torn, Some((Path::new(PATH).join(&file), offset)));
            } else {
                let error = opened.expect_err("a block follows");
                let is_there = matches!(&error, Error::Corrupt { offset: at, .. } if *at == offset);
                assert!(is_there && names(&error, &file), "{error}");
            }
        }
    }
}

/// Of groups that were in flight together the first is lost: those after it are cut off. If one of them was
/// written when the first was durable, it is damage.
#[test]
fn what_follows_a_torn_group_is_cut_off_unless_that_was_durable() {
    let (mut cut, mut named) = (0, 0);
    for step in 0..12 {
        let simulation = Simulation::builder().seed(step);
        let simulation = simulation.disk(|disk| disk.sync_latency(MILLISECOND..=MILLISECOND));
        let (mut files, is_confirmed) = run_on(simulation, move || async move {
            let config = small().wal_file_bytes(64 << 10).commit_bytes(100);
            let (log, _) = open(config).await.unwrap();
            // The first file has the space of one group.
            for ts in 0..2 {
                settle().await;
                log.append(ts, 0).unwrap().await.unwrap();
            }
            settle().await;
            let group = |ts| log.extend(vec![(ts, 0); 8]).unwrap();
            let mut commits: Vec<_> = (0..4).map(group).collect();
            sleep(Duration::from_micros(200 * step)).await;
            let is_confirmed = poll_once(commits.remove(0)).await.is_some();
            if is_confirmed {
                log.append(9, 0).unwrap().await.unwrap();
            }
            (read_files().await, is_confirmed)
        });
        let file = wal_name(2);
        let has_later = edit(&mut files, &file, |bytes| {
            let (first, later) = bytes[2 * UNIT..].split_at_mut(UNIT);
            first.fill(0);
            later.chunks(UNIT).any(|block| block[0] != 0)
        });
        let offset = 2 * UNIT as u64;
        match opened(&files) {
            Ok((found, recovery)) => {
                assert_eq!(found.len(), 2);
                let torn = has_later.then(|| (Path::new(PATH).join(&file), offset));
                assert_eq!(recovery.torn, torn);
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
    let mut files = run(1, || async {
        let (log, _) = open(small()).await.unwrap();
        drop(log.extend((0..20_000).map(|ts| (ts, 0))).unwrap());
        log.checkpoint().await.unwrap();
        log.close().await.unwrap();
        read_files().await
    });
    let file = files.keys().find(|it| it.starts_with("checkpoint"));
    let file = file.unwrap().clone();
    edit(&mut files, &file, |bytes| {
        let (first, second) = bytes[UNIT..].split_at_mut(PAGE_BYTES);
        first.swap_with_slice(&mut second[..PAGE_BYTES]);
    });
    let error = opened(&files).expect_err("pages have numbers");
    let is_there = matches!(&error, Error::Corrupt { offset, .. } if *offset == UNIT as u64);
    assert!(is_there && names(&error, &file), "{error}");
}

#[test]
fn values_of_another_type_of_the_same_width_are_refused() {
    run_with(&subject(1, true).files, || async {
        let error = Log::<i64>::open(PATH, small()).await.expect_err("as wide");
        assert!(matches!(error, Error::Format { .. }), "{error}");
        let wanted = "u64 of 8 bytes, not i64 of 8";
        assert!(error.to_string().contains(wanted), "{error}");
        let memory = timelog::Config::default().unit(TimeUnit::Seconds);
        let error = open(small().memory(memory)).await;
        let error = error.expect_err("another unit").to_string();
        assert!(error.contains("nanos, not seconds"), "{error}");
        // For programs that know of no type.
        let (log, _) = Log::<Raw>::open(PATH, small()).await.unwrap();
        let snapshot = log.snapshot();
        assert!(snapshot.count(..) > 1000);
        assert!(snapshot.range(..).all(|(_, value)| value.0.len() == 8));
    });
}

/// As much as there is, and what is not, by its place.
#[test]
fn what_is_whole_of_a_damaged_log_is_salvaged() {
    let subject = subject(1, true);
    let salvaged = |files: &Files| {
        run_with(files, || async {
            let salvaged = salvage::<u64>(PATH).await.unwrap();
            let rows = salvaged.snapshot.range(..).map(|(ts, value)| (ts, *value));
            (rows.collect::<Vec<_>>(), salvaged.losses)
        })
    };
    let (rows, losses) = salvaged(&subject.files);
    assert_eq!(rows, subject.rows);
    assert!(losses.is_empty(), "{losses:?}");
    for (file, bytes) in subject.files.iter().filter(|(name, _)| *name != "LOCK") {
        let is_used = |byte: &u8| *byte != 0 && *byte != b'\n';
        let used = bytes.iter().rposition(is_used).unwrap();
        let mut files = subject.files.clone();
        edit(&mut files, file, |bytes| bytes[used / 2] ^= 1);
        let (rows, losses) = salvaged(&files);
        let is_refused = opened(&files).is_err();
        assert_eq!(is_refused, !losses.is_empty(), "{file}: {losses:?}");
        if file == MANIFEST {
            assert_eq!(rows, subject.rows, "it is rebuilt from the names of files");
        } else if is_refused {
            assert!(losses.iter().all(|it| names(it, file)), "{losses:?}");
            assert!(!rows.is_empty());
        }
    }
}
