//! What concerns the simulation alone: faults, the page cache, full disks, listing.

use std::collections::BTreeSet;

use super::*;

const PAGE: usize = PAGE_BYTES as usize;

#[test]
fn a_full_disk_takes_what_fits() {
    let mut disk = disk(1, |settings| settings.full_at = Some(3 * PAGE_BYTES));
    let file = disk.open(None, b"f", CREATE, 0o600).unwrap();
    assert_eq!(disk.write(file, Some(100), &[1; PAGE]), Ok(PAGE));
    assert_eq!(used_bytes(&disk), 2 * PAGE_BYTES);
    assert_eq!(
        disk.write(file, Some(PAGE_BYTES), &[2; 3 * PAGE]),
        Ok(2 * PAGE)
    );
    assert_eq!(
        disk.write(file, None, &[3; 10]),
        Ok(10),
        "in space that it has"
    );
    assert_eq!(
        disk.write(file, Some(3 * PAGE_BYTES), &[2; 1]),
        Err(libc::ENOSPC)
    );
    assert_eq!(disk.allocate(file, 0, 3 * PAGE_BYTES, 1), Err(libc::ENOSPC));
    let other = disk.open(None, b"g", CREATE, 0o600).unwrap();
    assert_eq!(disk.copy_range(file, 0, other, 0, 10), Err(libc::ENOSPC));
    assert_eq!(
        disk.truncate(other, 1 << 40),
        Ok(()),
        "a hole takes no space"
    );
    // What is open lives on, and takes space.
    disk.unlink(None, b"f").unwrap();
    assert_eq!(disk.write(other, Some(0), &[2; 1]), Err(libc::ENOSPC));
    disk.close(file).unwrap();
    assert_eq!(used_bytes(&disk), 0);
    // What is allocated is there to be written.
    assert_eq!(
        disk.allocate(other, libc::FALLOC_FL_KEEP_SIZE, 0, 2 * PAGE_BYTES),
        Ok(())
    );
    assert_eq!(disk.allocate(other, 0, PAGE_BYTES, 2 * PAGE_BYTES), Ok(()));
    assert_eq!(used_bytes(&disk), 3 * PAGE_BYTES);
    assert_eq!(disk.write(other, Some(0), &[2; 3 * PAGE]), Ok(3 * PAGE));
    assert_eq!(used_bytes(&disk), 3 * PAGE_BYTES);
    let punch = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    assert_eq!(disk.allocate(other, punch, 1, 2 * PAGE_BYTES), Ok(()));
    assert_eq!(used_bytes(&disk), 2 * PAGE_BYTES);
    assert_eq!(disk.truncate(other, 0), Ok(()));
    assert_eq!(used_bytes(&disk), 0);
}

#[test]
fn space_is_counted_once() {
    let mut disk = disk(1, |_| {});
    let file = disk.open(None, b"f", CREATE, 0o600).unwrap();
    disk.write(file, Some(PAGE_BYTES), &[1; 2 * PAGE]).unwrap();
    disk.allocate(file, 0, 0, 2 * PAGE_BYTES).unwrap();
    assert_eq!(used_bytes(&disk), 3 * PAGE_BYTES);
    disk.allocate(file, 0, PAGE_BYTES, 3 * PAGE_BYTES).unwrap();
    assert_eq!(used_bytes(&disk), 4 * PAGE_BYTES);
    disk.truncate(file, 2 * PAGE_BYTES).unwrap();
    assert_eq!(used_bytes(&disk), 2 * PAGE_BYTES);
    disk.power_cut();
    assert_eq!(used_bytes(&disk), 2 * PAGE_BYTES);
}

#[test]
fn huge_ranges_cost_no_time() {
    let mut disk = disk(1, |settings| settings.full_at = Some(1 << 43));
    let file = disk.open(None, b"f", CREATE, 0o600).unwrap();
    assert_eq!(disk.allocate(file, 0, 1 << 30, 1 << 42), Ok(()));
    assert_eq!(
        disk.allocate(file, 0, 0, (1 << 44) - PAGE_BYTES),
        Err(libc::ENOSPC)
    );
    assert_eq!(disk.write(file, Some(1 << 42), &[1; 10]), Ok(10));
    assert_eq!(used_bytes(&disk), 1 << 42);
    let punch = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    assert_eq!(disk.allocate(file, punch, 0, 1 << 43), Ok(()));
    assert_eq!(used_bytes(&disk), 0);
}

#[test]
fn reads_without_waiting_find_what_is_cached() {
    let mut disk = disk(1, |_| {});
    durable(&mut disk, b"f", &[7; 3 * PAGE]);
    let file = disk.open(None, b"f", READ_WRITE, 0).unwrap();
    let mut buf = [0; 4 * PAGE];
    let written = disk.read_cached(file, Some(0), &mut buf);
    assert_eq!(written, Ok(3 * PAGE), "just written");
    disk.power_cut();
    let file = disk.open(None, b"f", READ_WRITE, 0).unwrap();
    let direct = disk.open(None, b"f", READ | libc::O_DIRECT, 0).unwrap();
    assert_eq!(disk.read_cached(file, Some(0), &mut buf), Err(libc::EAGAIN));
    let behind = disk.read_cached(file, Some(3 * PAGE_BYTES), &mut buf);
    assert_eq!(behind, Ok(0), "the end");
    let mut aligned = vec![0; 2 * PAGE];
    let aligned = system::aligned(&mut aligned, PAGE);
    assert_eq!(disk.read(direct, Some(0), aligned), Ok(PAGE));
    assert_eq!(disk.read_cached(file, Some(0), &mut buf), Err(libc::EAGAIN));
    assert_eq!(disk.read(file, Some(10), &mut buf[..1]), Ok(1));
    assert_eq!(disk.cached_bytes(file, 10, 2 * PAGE), Ok(PAGE - 10));
    assert_eq!(disk.read_cached(file, Some(10), &mut buf), Ok(PAGE - 10));
    let beyond = disk.read_cached(direct, Some(1 << 63), &mut buf);
    assert_eq!(beyond, Err(libc::EINVAL));
}

#[test]
fn names_are_listed_once_whatever_is_removed_meanwhile() {
    let mut disk = disk(3, |_| {});
    let all: BTreeSet<Vec<u8>> = (0..100)
        .map(|name| format!("n{name}").into_bytes())
        .collect();
    for name in &all {
        let file = disk.open(None, name, CREATE, 0o600).unwrap();
        disk.close(file).unwrap();
    }
    let root = disk.open(None, b"/", READ, 0).unwrap();
    assert_eq!(
        disk.read_directory(root, 20),
        Err(libc::EINVAL),
        "not one fits"
    );
    let mut found = Vec::new();
    loop {
        let block = disk.read_directory(root, 200).unwrap();
        let bytes: usize = block.iter().map(Entry::record_bytes).sum();
        assert!(bytes <= 200);
        let Some(last) = block.last() else { break };
        disk.set_position(root, last.cookie).unwrap();
        for entry in block {
            if entry.name.starts_with(b"n") {
                disk.unlink(None, &entry.name).unwrap();
                assert_eq!(entry.kind, libc::DT_REG);
            }
            found.push(entry.name);
        }
    }
    assert_eq!(found[..2], [b".".to_vec(), b"..".to_vec()]);
    let mut sorted = found.split_off(2);
    assert_eq!(sorted.len(), all.len());
    assert!(!sorted.is_sorted(), "the order says nothing");
    sorted.sort();
    assert!(sorted.iter().eq(&all));

    disk.make_directory(None, b"d", 0o700).unwrap();
    let removed = disk.open(None, b"d", READ, 0).unwrap();
    disk.remove_directory(None, b"d").unwrap();
    assert_eq!(disk.read_directory(removed, 1000), Err(libc::ENOENT));
    let file = disk.open(None, b"f", CREATE, 0o600).unwrap();
    assert_eq!(disk.read_directory(file, 1000), Err(libc::ENOTDIR));
}

#[test]
fn what_is_closed_is_not_open() {
    let mut disk = disk(1, |_| {});
    let file = disk.open(None, b"f", CREATE, 0o600).unwrap();
    assert_eq!(disk.open.len(), 1);
    let pending = disk.begin_sync(file).unwrap();
    disk.close(file).unwrap();
    assert_eq!(disk.close(file), Err(libc::EBADF));
    assert_eq!(disk.read(file, None, &mut [0]), Err(libc::EBADF));
    assert_eq!(disk.write(file, None, &[0]), Err(libc::EBADF));
    assert_eq!(disk.sync(file), Err(libc::EBADF));
    assert_eq!(disk.end_sync(pending), Err(libc::EBADF));
    assert_eq!(disk.stat(file), Err(libc::EBADF));
    assert_eq!(disk.open(Some(file), b"f", READ, 0), Err(libc::EBADF));
    assert_eq!(
        disk.open(Some(file), b"/f", READ | libc::O_DIRECTORY, 0),
        Err(libc::ENOTDIR)
    );
    assert_eq!(disk.open.len(), 0);
}

#[test]
fn errors_come_as_often_as_they_are_asked_for() {
    let mut disk = disk(1, |_| {});
    let file = disk.open(None, b"f", CREATE, 0o600).unwrap();
    let mut settings = disk.settings().clone();
    settings.errors = ErrorRates::all(0.25);
    disk.set_settings(settings.clone());
    let mut fails = |operation: fn(&mut Disk, FileId) -> Result<usize>| {
        let failures = (0..1000).filter(|_| operation(&mut disk, file) == Err(libc::EIO));
        (200..300).contains(&failures.count())
    };
    assert!(fails(|disk, file| disk.read(file, Some(0), &mut [0])));
    assert!(fails(|disk, file| disk.write(file, Some(0), &[0])));
    assert!(fails(|disk, file| disk.sync(file).map(|()| 0)));
    assert!(fails(|disk, _| {
        let is_there = disk.stat_at(None, b"f", true).is_ok();
        let (from, to) = if is_there { (b"f", b"g") } else { (b"g", b"f") };
        disk.rename(None, from, None, to).map(|()| 0)
    }));
    settings.errors = ErrorRates::default();
    (settings.short_reads, settings.short_writes) = (1.0, 1.0);
    disk.set_settings(settings.clone());
    for _ in 0..100 {
        let written = disk.write(file, Some(0), &[5; 10]).unwrap();
        assert!((1..10).contains(&written));
    }
    disk.truncate(file, 10).unwrap();
    for _ in 0..100 {
        let read = disk.read(file, Some(0), &mut [0; 10]).unwrap();
        assert!((1..10).contains(&read));
        assert_eq!(disk.read(file, Some(0), &mut [0; 1]), Ok(1), "not the end");
    }
    let flags = disk.flags(file).unwrap();
    disk.set_flags(file, flags | libc::O_DIRECT).unwrap();
    let mut buf = vec![0; 3 * PAGE];
    for _ in 0..100 {
        let buf = system::aligned(&mut buf, PAGE);
        let written = disk.write(file, Some(0), buf).unwrap();
        assert!((512..PAGE).contains(&written) && written % 512 == 0);
    }
}

#[test]
fn bits_rot() {
    let mut disk = disk(1, |settings| settings.bit_rot = 1.0);
    durable(&mut disk, b"f", &[0; 100]);
    let bytes = content(&mut disk, b"f").unwrap();
    assert_eq!(bytes.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
}

#[test]
fn operations_take_the_time_that_is_set() {
    let mut settings = DiskSettings::default();
    settings.latency.read = Duration::from_millis(1)..=Duration::from_millis(2);
    settings.latency.bytes_per_second = Some(1000);
    settings.latency.sync = Duration::from_secs(1)..=Duration::from_secs(1);
    let mut disk = Disk::new(1, settings);
    let mut different = BTreeSet::new();
    for _ in 0..100 {
        let duration = disk.duration_of(Operation::Read, 500);
        different.insert(duration);
        let fixed = duration - Duration::from_millis(500);
        assert!((Duration::from_millis(1)..=Duration::from_millis(2)).contains(&fixed));
    }
    assert!(different.len() > 50);
    assert_eq!(disk.duration_of(Operation::Sync, 0), Duration::from_secs(1));
    let mut settings = disk.settings().clone();
    settings.latency = no_latency();
    settings.latency.stalls = 0.25;
    settings.latency.stall = Duration::from_secs(9)..=Duration::from_secs(9);
    disk.set_settings(settings);
    let durations = (0..1000).map(|_| disk.duration_of(Operation::Read, 500));
    let stalls = durations
        .filter(|duration| *duration == Duration::from_secs(9))
        .count();
    assert!((200..300).contains(&stalls), "{stalls}");
}

#[test]
fn times_are_those_of_the_changes() {
    let mut disk = disk(1, |_| {});
    let at = Duration::from_secs;
    disk.set_now(at(1));
    let file = disk.open(None, b"f", CREATE, 0o600).unwrap();
    disk.set_now(at(2));
    disk.write(file, Some(0), &[1]).unwrap();
    disk.set_now(at(3));
    disk.set_mode_at(None, b"f", 0o644).unwrap();
    let stat = disk.stat_at(None, b"f", true).unwrap();
    assert_eq!(
        (stat.born, stat.modified, stat.changed),
        (at(1), at(2), at(3))
    );
    assert_eq!(stat.mode, libc::S_IFREG | 0o644);
    assert_eq!((stat.size, stat.blocks), (1, 8));
    assert_eq!(disk.stat_at(None, b"/", true).unwrap().modified, at(1));
    disk.unlink(None, b"f").unwrap();
    assert_eq!(disk.stat_at(None, b"/", true).unwrap().modified, at(3));
}

#[test]
#[should_panic(expected = "a sector has 512")]
fn sectors_of_other_sizes_are_refused() {
    disk(1, |settings| settings.sector_bytes = 1000);
}

#[test]
fn direct_copies_pass_the_page_cache_by() {
    let mut disk = disk(1, |_| {});
    durable(&mut disk, b"f", &[1; PAGE]);
    disk.power_cut();
    let from = disk.open(None, b"f", READ_WRITE, 0).unwrap();
    let to = disk.open(None, b"g", CREATE, 0o600).unwrap();
    for file in [from, to] {
        disk.set_flags(file, libc::O_DIRECT).unwrap();
    }
    let cached = |disk: &Disk| [from, to].map(|file| disk.cached_bytes(file, 0, PAGE));
    assert_eq!(disk.copy_range(from, 0, to, 0, PAGE), Ok(PAGE));
    assert_eq!(cached(&disk), [Ok(0), Ok(0)]);
    for file in [from, to] {
        disk.set_flags(file, 0).unwrap();
    }
    assert_eq!(disk.copy_range(from, 0, to, 0, PAGE), Ok(PAGE));
    assert_eq!(cached(&disk), [Ok(PAGE), Ok(PAGE)]);
}
