//! What the simulated file system and a real one have in common: a scenario is a list of steps.

use super::*;

/// One system call. Open files are known by their numbers.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Relative to an open directory, or to the one in which everything is.
    Open(usize, Option<usize>, String, i32),
    Close(usize),
    Read(usize, Option<u64>, usize),
    /// So many bytes of this value.
    Write(usize, Option<u64>, usize, u8),
    Truncate(usize, u64),
    Allocate(usize, i32, u64, u64),
    Copy(usize, u64, usize, u64, usize),
    Sync(usize),
    Seek(usize, u64),
    Stat(usize),
    StatAt(String, bool),
    SetDirect(usize, bool),
    Lock(usize, Option<Lock>),
    MakeDirectory(String),
    RemoveDirectory(String),
    Unlink(String),
    Rename(String, String),
    Link(String, String),
    /// Gives an open file a name.
    LinkOpen(usize, String),
    Symlink(String, String),
    ReadLink(String),
    MakeSocket(String),
    /// The names in an open directory but for `.` and `..`, sorted.
    List(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// There is no open file of this number.
    Skipped,
    Count(usize),
    Bytes(Vec<u8>),
    Names(Vec<(Vec<u8>, u8)>),
    /// Kind and permissions, links, and the size unless it is a directory.
    Stat(u32, u32, u64),
}

/// A file system, or a door to one.
pub(super) trait System {
    fn take(&mut self, step: &Step) -> Result<Outcome>;
}

/// The simulated one.
pub(super) struct Simulated {
    pub(super) disk: Disk,
    base: FileId,
    pub(super) files: BTreeMap<usize, FileId>,
    buf: Vec<u8>,
}

impl Simulated {
    pub(super) fn new(mut disk: Disk) -> Self {
        disk.make_directory(None, b"/base", 0o700).unwrap();
        let base = disk.open(None, b"base", READ, 0).unwrap();
        Simulated {
            disk,
            base,
            files: BTreeMap::new(),
            buf: vec![0; 1 << 20],
        }
    }

    fn stated(stat: Stat) -> Outcome {
        let is_directory = stat.mode & libc::S_IFMT == libc::S_IFDIR;
        Outcome::Stat(
            stat.mode,
            stat.links,
            if is_directory { 0 } else { stat.size },
        )
    }
}

impl System for Simulated {
    fn take(&mut self, step: &Step) -> Result<Outcome> {
        let base = Some(self.base);
        let disk = &mut self.disk;
        let files = &mut self.files;
        macro_rules! file {
            ($number:expr) => {
                match files.get($number) {
                    Some(file) => *file,
                    None => return Ok(Outcome::Skipped),
                }
            };
        }
        match step {
            Step::Open(number, from, path, flags) => {
                let from = match from {
                    Some(from) => Some(file!(from)),
                    None => base,
                };
                let opened = disk.open(from, path.as_bytes(), *flags, 0o600)?;
                if let Some(before) = files.insert(*number, opened) {
                    disk.close(before)?;
                }
            }
            Step::Close(number) => {
                let file = file!(number);
                files.remove(number);
                disk.close(file)?;
            }
            Step::Read(number, offset, len) => {
                let buf = aligned(&mut self.buf, *len);
                let read = disk.read(file!(number), *offset, buf)?;
                return Ok(Outcome::Bytes(buf[..read].to_vec()));
            }
            Step::Write(number, offset, len, value) => {
                let buf = aligned(&mut self.buf, *len);
                buf.fill(*value);
                let written = disk.write(file!(number), *offset, buf)?;
                return Ok(Outcome::Count(written));
            }
            Step::Truncate(number, size) => disk.truncate(file!(number), *size)?,
            Step::Allocate(number, mode, offset, len) => {
                disk.allocate(file!(number), *mode, *offset, *len)?;
            }
            Step::Copy(from, from_offset, to, to_offset, len) => {
                let (from, to) = (file!(from), file!(to));
                let copied = disk.copy_range(from, *from_offset, to, *to_offset, *len)?;
                return Ok(Outcome::Count(copied));
            }
            Step::Sync(number) => disk.sync(file!(number))?,
            Step::Seek(number, position) => disk.set_position(file!(number), *position)?,
            Step::Stat(number) => return Ok(Self::stated(disk.stat(file!(number))?)),
            Step::StatAt(path, follows) => {
                return Ok(Self::stated(disk.stat_at(
                    base,
                    path.as_bytes(),
                    *follows,
                )?));
            }
            Step::SetDirect(number, is_direct) => {
                let file = file!(number);
                let flags = disk.flags(file)? & !libc::O_DIRECT;
                let flag = if *is_direct { libc::O_DIRECT } else { 0 };
                disk.set_flags(file, flags | flag)?;
            }
            Step::Lock(number, lock) => disk.lock(file!(number), *lock)?,
            Step::MakeDirectory(path) => disk.make_directory(base, path.as_bytes(), 0o700)?,
            Step::RemoveDirectory(path) => disk.remove_directory(base, path.as_bytes())?,
            Step::Unlink(path) => disk.unlink(base, path.as_bytes())?,
            Step::Rename(from, to) => {
                disk.rename(base, from.as_bytes(), base, to.as_bytes())?;
            }
            Step::Link(from, to) => {
                disk.link(base, from.as_bytes(), base, to.as_bytes())?;
            }
            Step::LinkOpen(number, to) => disk.link_open(file!(number), base, to.as_bytes())?,
            Step::Symlink(target, path) => {
                disk.symlink(target.as_bytes(), base, path.as_bytes())?
            }
            Step::MakeSocket(path) => disk.make_socket(base, path.as_bytes()).map(drop)?,
            Step::ReadLink(path) => {
                return Ok(Outcome::Bytes(disk.read_link(base, path.as_bytes())?));
            }
            Step::List(number) => return listed(disk, file!(number)),
        }
        Ok(Outcome::Done)
    }
}

fn listed(disk: &mut Disk, directory: FileId) -> Result<Outcome> {
    disk.set_position(directory, 0)?;
    let mut names = Vec::new();
    loop {
        // Two or three at a time.
        let block = disk.read_directory(directory, 100)?;
        if block.is_empty() {
            break;
        }
        names.extend(block.into_iter().map(|entry| (entry.name, entry.kind)));
    }
    let count = names.len();
    names.retain(|(name, _)| !matches!(&name[..], b"." | b".."));
    assert_eq!(names.len() + 2, count);
    names.sort();
    Ok(Outcome::Names(names))
}

/// So many bytes of `buf`, from a multiple of 4096 on.
pub(super) fn aligned(buf: &mut [u8], len: usize) -> &mut [u8] {
    let start = buf.as_ptr().addr().next_multiple_of(4096) - buf.as_ptr().addr();
    &mut buf[start..start + len]
}
