//! Scenarios that have the same results, errno by errno, in the simulation and on this machine.

mod names;

use libc::{
    EBADF, EBUSY, EEXIST, EFBIG, EINVAL, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, ENOTEMPTY,
    EOPNOTSUPP, EPERM, EWOULDBLOCK, O_APPEND, O_CREAT, O_DIRECT, O_DIRECTORY, O_DSYNC, O_EXCL,
    O_NOFOLLOW, O_PATH, O_RDONLY, O_RDWR, O_TMPFILE, O_TRUNC, O_WRONLY,
};

use super::real::{Real, is_ext4};
use super::system::{Outcome, Simulated, Step, System};
use super::*;

/// Takes the steps in both, which have to agree; and where an expectation is given, with that.
fn check(steps: Vec<(Step, Option<Result<Outcome>>)>) {
    let mut real = Real::new();
    let mut simulated = Simulated::new(disk(1, |_| {}));
    let has_direct_io = real.has_direct_io();
    let flags = |step: &Step| match step {
        Step::Open(_, _, _, flags) => *flags,
        Step::SetDirect(..) => O_DIRECT,
        _ => 0,
    };
    if !has_direct_io && steps.iter().any(|(step, _)| flags(step) & O_DIRECT != 0) {
        println!("skipped: no direct I/O of 512 bytes where temporary files are");
        return;
    }
    for (number, (step, expected)) in steps.into_iter().enumerate() {
        let (here, there) = (simulated.take(&step), real.take(&step));
        assert_eq!(here, there, "simulated and real, step {number}: {step:?}");
        if let Some(expected) = expected {
            assert_eq!(here, expected, "step {number}: {step:?}");
        }
    }
}

const DONE: Option<Result<Outcome>> = Some(Ok(Outcome::Done));

fn fails(errno: i32) -> Option<Result<Outcome>> {
    Some(Err(errno))
}

fn bytes(bytes: &[u8]) -> Option<Result<Outcome>> {
    Some(Ok(Outcome::Bytes(bytes.to_vec())))
}

fn count(count: usize) -> Option<Result<Outcome>> {
    Some(Ok(Outcome::Count(count)))
}

fn open(number: usize, path: &str, flags: i32) -> Step {
    Step::Open(number, None, path.into(), flags)
}

fn mkdir(path: &str) -> (Step, Option<Result<Outcome>>) {
    (Step::MakeDirectory(path.into()), DONE)
}

/// A file with five bytes.
fn file(path: &str) -> [(Step, Option<Result<Outcome>>); 3] {
    [
        (open(90, path, O_CREAT | O_EXCL | O_WRONLY), DONE),
        (Step::Write(90, Some(0), 5, 7), count(5)),
        (Step::Close(90), DONE),
    ]
}

fn link(target: &str, path: &str) -> (Step, Option<Result<Outcome>>) {
    (Step::Symlink(target.into(), path.into()), DONE)
}

fn rename(from: &str, to: &str) -> Step {
    Step::Rename(from.into(), to.into())
}

fn unlink(path: &str) -> Step {
    Step::Unlink(path.into())
}

fn rmdir(path: &str) -> Step {
    Step::RemoveDirectory(path.into())
}

fn stat(path: &str) -> Step {
    Step::StatAt(path.into(), true)
}

#[test]
fn files_are_opened_and_made_by_their_flags() {
    let mut steps = vec![
        mkdir("d"),
        link("f", "l"),
        link("none", "dangling"),
        link("d", "ld"),
    ];
    steps.extend(file("f"));
    steps.extend([
        (open(0, "none", O_RDONLY), fails(ENOENT)),
        (open(0, "f", O_RDONLY | O_CREAT | O_EXCL), fails(EEXIST)),
        (open(0, "l", O_RDWR | O_CREAT | O_EXCL), fails(EEXIST)),
        (
            open(0, "dangling", O_RDWR | O_CREAT | O_EXCL),
            fails(EEXIST),
        ),
        (open(0, "l", O_RDONLY | O_NOFOLLOW), fails(ELOOP)),
        (open(0, "l", O_RDWR | O_CREAT | O_NOFOLLOW), fails(ELOOP)),
        (
            open(0, "ld", O_RDONLY | O_NOFOLLOW | O_DIRECTORY),
            fails(ENOTDIR),
        ),
        (open(0, "f", O_RDONLY | O_DIRECTORY), fails(ENOTDIR)),
        (open(0, "f/", O_RDONLY), fails(ENOTDIR)),
        (open(0, "f/x", O_RDONLY), fails(ENOTDIR)),
        (open(0, "d", O_RDWR), fails(EISDIR)),
        (open(0, "d", O_WRONLY), fails(EISDIR)),
        (open(0, "d", O_RDONLY | O_TRUNC), fails(EISDIR)),
        (open(0, "d", O_RDONLY | O_CREAT), fails(EISDIR)),
        (open(0, ".", O_RDONLY | O_CREAT), fails(EISDIR)),
        (open(0, "d/..", O_RDONLY | O_CREAT), fails(EISDIR)),
        (open(0, "d", O_RDONLY | O_DIRECT), fails(EINVAL)),
        (open(0, "new/", O_RDWR | O_CREAT), fails(EISDIR)),
        (open(0, "f/", O_RDWR | O_CREAT), fails(EISDIR)),
        (open(0, "none/new", O_RDWR | O_CREAT), fails(ENOENT)),
        (
            open(0, "new", O_RDWR | O_CREAT | O_DIRECTORY),
            fails(EINVAL),
        ),
        (open(0, "", O_RDONLY), fails(ENOENT)),
        (
            open(0, &"n".repeat(256), O_RDWR | O_CREAT),
            fails(ENAMETOOLONG),
        ),
        (open(0, &"n".repeat(255), O_RDWR | O_CREAT), DONE),
        (open(0, &"d/../".repeat(900), O_RDONLY), fails(ENAMETOOLONG)),
        (open(0, &"d/../".repeat(800), O_RDONLY), DONE),
        (open(0, "dangling", O_RDWR | O_CREAT), DONE),
        (stat("none"), None),
        (open(0, "f", O_RDONLY | O_TRUNC), DONE),
        (Step::Stat(0), None),
        (open(0, "d/", O_RDONLY | O_DIRECTORY), DONE),
        (
            Step::Open(1, Some(0), "new".into(), CREATE | O_APPEND | O_DSYNC),
            DONE,
        ),
        (
            Step::Open(2, Some(1), "new".into(), O_RDONLY),
            fails(ENOTDIR),
        ),
        (Step::Open(2, Some(0), "../d/./new".into(), O_RDONLY), DONE),
        (
            Step::Open(2, Some(0), "../../base//d///new".into(), O_RDONLY),
            DONE,
        ),
    ]);
    check(steps);
}

#[test]
fn symbolic_links_lead_on_until_there_are_too_many() {
    let mut steps = vec![
        mkdir("d"),
        link("loop", "loop"),
        link("f", "chain0"),
        link("d/", "slash"),
    ];
    steps.extend(file("f"));
    for number in 1..=40 {
        steps.push(link(
            &format!("chain{}", number - 1),
            &format!("chain{number}"),
        ));
    }
    steps.extend([
        link("../f", "d/up"),
        link("d/up", "through"),
        link("f", "tof"),
        link("f/", "file_slash"),
        (open(0, "loop", O_RDONLY), fails(ELOOP)),
        (open(0, "chain39", O_RDONLY), DONE),
        (open(0, "chain40", O_RDONLY), fails(ELOOP)),
        (open(0, "through", O_RDONLY), DONE),
        (open(0, "tof/", O_RDONLY), fails(ENOTDIR)),
        (open(0, "file_slash", O_RDONLY), fails(ENOTDIR)),
        (open(0, "slash", O_RDONLY), DONE),
        (open(0, "slash/up", O_RDONLY), DONE),
        (Step::ReadLink("through".into()), bytes(b"d/up")),
        (Step::ReadLink("slash/".into()), fails(EINVAL)),
        (Step::ReadLink("slash".into()), bytes(b"d/")),
        (Step::ReadLink("f".into()), fails(EINVAL)),
        (Step::ReadLink("none".into()), fails(ENOENT)),
        (Step::StatAt("through".into(), false), None),
        (Step::StatAt("through".into(), true), None),
        (Step::StatAt("slash/".into(), false), None),
        (Step::Symlink("x".into(), "f".into()), fails(EEXIST)),
        (Step::Symlink("".into(), "new".into()), fails(ENOENT)),
        (Step::Symlink("x".into(), "new/".into()), fails(ENOENT)),
        (
            Step::Symlink("x".repeat(4096), "new".into()),
            fails(ENAMETOOLONG),
        ),
        (Step::Symlink("x".into(), ".".into()), fails(EEXIST)),
        (Step::MakeDirectory("through".into()), fails(EEXIST)),
        (rmdir("slash/"), fails(ENOTDIR)),
        (rmdir("slash"), fails(ENOTDIR)),
        (unlink("slash/"), fails(ENOTDIR)),
        (unlink("slash"), DONE),
        (Step::Link("through".into(), "hard".into()), DONE),
        (Step::StatAt("hard".into(), false), None),
        (stat("f"), None),
    ]);
    check(steps);
}

#[test]
fn reads_and_writes_keep_to_what_the_file_is_open_for() {
    let mut steps = vec![mkdir("d")];
    steps.extend(file("f"));
    steps.extend([
        (open(0, "f", O_RDONLY), DONE),
        (open(1, "f", O_WRONLY), DONE),
        (open(2, "d", O_RDONLY), DONE),
        (open(3, "f", O_PATH), DONE),
        (open(4, "f", O_WRONLY | O_APPEND), DONE),
        (open(5, "f", O_WRONLY | O_RDWR), DONE),
        (Step::Write(0, Some(0), 1, 1), fails(EBADF)),
        (Step::Read(1, Some(0), 1), fails(EBADF)),
        (Step::Read(2, Some(0), 1), fails(EISDIR)),
        (Step::Write(2, Some(0), 1, 1), fails(EBADF)),
        (Step::Read(5, Some(0), 1), fails(EBADF)),
        (Step::Write(5, Some(0), 1, 1), fails(EBADF)),
        (Step::Read(3, Some(0), 1), fails(EBADF)),
        (Step::Write(3, Some(0), 1, 1), fails(EBADF)),
        (Step::Truncate(3, 1), fails(EBADF)),
        (Step::Sync(3), fails(EBADF)),
        (Step::Seek(3, 0), fails(EBADF)),
        (Step::Lock(3, Some(Lock::Shared)), fails(EBADF)),
        (Step::Allocate(3, 0, 0, 1), fails(EBADF)),
        (Step::Stat(3), None),
        (Step::Truncate(0, 1), fails(EINVAL)),
        (Step::Truncate(2, 1), fails(EINVAL)),
        (Step::Allocate(0, 0, 0, 1), fails(EBADF)),
        (Step::Read(0, Some(1 << 63), 1), fails(EINVAL)),
        (Step::Read(0, Some((1 << 63) - 2), 1), bytes(b"")),
        (Step::Read(0, Some((1 << 63) - 1), 1), fails(EINVAL)),
        (Step::Read(0, Some((1 << 63) - 1), 0), None),
        (Step::Write(1, Some(1 << 63), 1, 1), fails(EINVAL)),
        (Step::Write(1, Some((1 << 63) - 1), 1, 1), fails(EINVAL)),
        (Step::Read(0, Some(5), 1), bytes(b"")),
        (Step::Read(0, Some(100), 1), bytes(b"")),
        (Step::Read(0, Some(3), 10), bytes(&[7, 7])),
        (Step::Read(0, None, 2), bytes(&[7, 7])),
        (Step::Read(0, None, 0), bytes(b"")),
        (Step::Read(0, None, 10), bytes(&[7, 7, 7])),
        (Step::Write(1, None, 3, 1), count(3)),
        (Step::Write(1, None, 3, 2), count(3)),
        (Step::Write(4, Some(0), 2, 3), count(2)),
        (Step::Read(0, Some(0), 10), bytes(&[1, 1, 1, 2, 2, 2, 3, 3])),
        (Step::Seek(1, 10_000), DONE),
        (Step::Write(1, None, 0, 9), count(0)),
        (Step::Stat(1), None),
        (Step::Write(1, None, 1, 9), count(1)),
        (Step::Read(0, Some(7), 20_000), None),
        (Step::Sync(0), DONE),
        (Step::Sync(2), DONE),
        (Step::Stat(0), None),
        (Step::Seek(0, 1 << 63), fails(EINVAL)),
    ]);
    check(steps);
}

#[test]
fn sizes_have_the_bounds_of_an_ext4() {
    const LONGEST: u64 = (1 << 44) - 4096;
    if !is_ext4() {
        println!("skipped: temporary files are not on an ext4");
        return;
    }
    let mut steps = vec![
        mkdir("d"),
        (open(0, "d", READ), DONE),
        (rmdir("d"), DONE),
        (
            Step::Open(1, Some(0), ".".into(), O_TMPFILE | O_RDWR),
            fails(EPERM),
        ),
    ];
    steps.extend(file("f"));
    steps.extend([
        (open(0, "f", O_RDWR), DONE),
        (Step::Truncate(0, 1 << 63), fails(EINVAL)),
        (Step::Truncate(0, 8192), DONE),
        (Step::Read(0, Some(0), 8), bytes(&[7, 7, 7, 7, 7, 0, 0, 0])),
        (Step::Truncate(0, 3), DONE),
        (Step::Truncate(0, 5), DONE),
        (Step::Read(0, Some(0), 8), bytes(&[7, 7, 7, 0, 0])),
        (Step::Allocate(0, 0, 0, 0), fails(EINVAL)),
        (Step::Allocate(0, 0, 1 << 63, 1), fails(EINVAL)),
        (Step::Allocate(0, 0, 0, 1 << 63), fails(EINVAL)),
        (
            Step::Allocate(0, libc::FALLOC_FL_PUNCH_HOLE, 0, 1),
            fails(EOPNOTSUPP),
        ),
        (
            Step::Allocate(0, libc::FALLOC_FL_KEEP_SIZE, 4096, 4096),
            DONE,
        ),
        (Step::Stat(0), None),
        (Step::Allocate(0, 0, 4000, 1000), DONE),
        (Step::Stat(0), None),
        (Step::Write(0, Some(0), 10_000, 8), count(10_000)),
        (
            Step::Allocate(
                0,
                libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
                100,
                9000,
            ),
            DONE,
        ),
        (Step::Read(0, Some(0), 20_000), None),
        (
            Step::Allocate(
                0,
                libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
                9990,
                9000,
            ),
            DONE,
        ),
        (Step::Read(0, Some(0), 20_000), None),
        (Step::Seek(0, LONGEST), DONE),
        (Step::Seek(0, LONGEST + 1), fails(EINVAL)),
        (Step::Write(0, None, 1, 1), fails(EFBIG)),
        (Step::Write(0, Some(LONGEST), 1, 1), fails(EFBIG)),
        (Step::Write(0, Some(LONGEST - 1), 2, 1), count(1)),
        (Step::Stat(0), None),
        (Step::Truncate(0, LONGEST + 1), fails(EFBIG)),
        (Step::Truncate(0, LONGEST), DONE),
        (Step::Allocate(0, 0, LONGEST, 1), fails(EFBIG)),
        (Step::Read(0, Some(LONGEST - 2), 8), bytes(&[0, 1])),
    ]);
    check(steps);
}

#[test]
fn direct_io_is_aligned() {
    check(vec![
        (open(0, "f", CREATE | O_DIRECT), DONE),
        (Step::Write(0, Some(0), 1024, 1), count(1024)),
        (Step::Write(0, Some(100), 512, 1), fails(EINVAL)),
        (Step::Write(0, Some(512), 100, 1), fails(EINVAL)),
        (Step::Write(0, Some(512), 512, 2), count(512)),
        (Step::Read(0, Some(100), 512), fails(EINVAL)),
        (Step::Read(0, Some(0), 100), fails(EINVAL)),
        (Step::Read(0, Some(0), 4096), None),
        (Step::Read(0, Some(1024), 512), bytes(b"")),
        (Step::Read(0, Some(4096), 512), bytes(b"")),
        (Step::Read(0, Some(1030), 512), None),
        (Step::Read(0, Some(0), 0), bytes(b"")),
        (Step::Truncate(0, 700), DONE),
        (Step::Read(0, Some(512), 512), None),
        (Step::Write(0, None, 512, 4), count(512)),
        (Step::Write(0, None, 512, 5), count(512)),
        (Step::Read(0, Some(0), 2048), None),
        (Step::SetDirect(0, false), DONE),
        (Step::Write(0, Some(100), 3, 3), count(3)),
        (Step::SetDirect(0, true), DONE),
        (Step::Read(0, Some(0), 512), None),
        (Step::Write(0, Some(5), 3, 3), fails(EINVAL)),
        (open(1, "f", O_WRONLY | O_DIRECT | O_APPEND), DONE),
        (Step::Write(1, Some(0), 512, 6), count(512)),
        (Step::Stat(1), None),
        (open(2, ".", O_RDONLY), DONE),
        (Step::SetDirect(2, true), fails(EINVAL)),
    ]);
}

#[test]
fn locks_are_of_open_files() {
    let (shared, exclusive) = (Some(Lock::Shared), Some(Lock::Exclusive));
    let mut steps = vec![];
    steps.extend(file("f"));
    steps.extend([
        (open(0, "f", READ), DONE),
        (open(1, "f", READ), DONE),
        (open(2, "f", READ), DONE),
        (Step::Lock(0, shared), DONE),
        (Step::Lock(1, shared), DONE),
        (Step::Lock(2, exclusive), fails(EWOULDBLOCK)),
        (Step::Lock(0, exclusive), fails(EWOULDBLOCK)),
        // What it held is lost by that.
        (Step::Lock(1, exclusive), DONE),
        (Step::Lock(0, shared), fails(EWOULDBLOCK)),
        (Step::Lock(1, shared), DONE),
        (Step::Lock(0, shared), DONE),
        (Step::Lock(1, None), DONE),
        (Step::Lock(0, exclusive), DONE),
        (Step::Lock(0, exclusive), DONE),
        (Step::Lock(2, shared), fails(EWOULDBLOCK)),
        (Step::Close(0), DONE),
        (Step::Lock(2, exclusive), DONE),
    ]);
    check(steps);
}

#[test]
fn ranges_are_copied_between_files() {
    let mut steps = vec![mkdir("d")];
    steps.extend(file("f"));
    steps.extend([
        (open(0, "f", O_RDWR), DONE),
        (open(1, "g", CREATE), DONE),
        (open(2, "f", O_RDONLY), DONE),
        (open(3, "f", O_WRONLY | O_APPEND), DONE),
        (open(4, "d", O_RDONLY), DONE),
        (Step::Copy(0, 1, 1, 10, 100), count(4)),
        (Step::Read(1, Some(0), 100), None),
        (Step::Copy(0, 5, 1, 0, 10), count(0)),
        (Step::Copy(0, 50, 1, 0, 10), count(0)),
        (Step::Copy(0, 0, 1, 0, 0), count(0)),
        (Step::Copy(1, 0, 0, 0, 2), count(2)),
        (Step::Copy(0, 0, 2, 0, 1), fails(EBADF)),
        (Step::Copy(0, 0, 3, 0, 1), fails(EBADF)),
        (Step::Copy(3, 0, 1, 0, 1), fails(EBADF)),
        (Step::Copy(4, 0, 1, 0, 1), fails(EISDIR)),
        (Step::Copy(0, 0, 4, 0, 1), fails(EISDIR)),
        (Step::Copy(0, 0, 0, 2, 3), fails(EINVAL)),
        (Step::Copy(0, 0, 0, 5, 3), count(3)),
        (Step::Copy(0, 1 << 63, 1, 0, 1), None),
        (Step::Copy(0, 0, 1, 1 << 63, 1), None),
        (Step::Copy(0, 0, 1, (1 << 63) - 1, 1), None),
        (Step::Copy(0, (1 << 63) - 1, 1, 0, 1), None),
        (Step::Copy(0, 0, 1, 1 << 45, 1), None),
        (Step::Read(0, Some(0), 100), None),
    ]);
    check(steps);
}

#[test]
fn direct_copies_are_aligned() {
    check(vec![
        (open(0, "f", CREATE), DONE),
        (Step::Write(0, Some(0), 1500, 1), count(1500)),
        (open(1, "g", CREATE | O_DIRECT), DONE),
        (Step::Copy(0, 0, 1, 0, 1024), count(1024)),
        (Step::Copy(0, 512, 1, 1024, 512), count(512)),
        (Step::Copy(0, 0, 1, 0, 100), fails(EINVAL)),
        (Step::Copy(0, 0, 1, 100, 512), fails(EINVAL)),
        // What is left of the file is less than a sector.
        (Step::Copy(0, 1024, 1, 0, 512), fails(EINVAL)),
        (Step::Copy(0, 1500, 1, 100, 1), count(0)),
        (Step::Copy(1, 0, 0, 100, 512), count(512)),
        (Step::Copy(1, 512, 0, 0, 100), fails(EINVAL)),
        (Step::Copy(1, 100, 0, 0, 512), fails(EINVAL)),
        (Step::Copy(1, 1536, 0, 0, 100), count(0)),
        (Step::Copy(1, 0, 1, 2048, 512), count(512)),
        (Step::SetDirect(1, false), DONE),
        (Step::Read(1, Some(0), 4096), None),
        (Step::Read(0, Some(0), 4096), None),
    ]);
}
