//! Reading and writing files.

use std::ops::Range;

use super::content::{Content, PAGE_BYTES, pages_of};
use super::inode::{DIRECT_MEMORY_ALIGNMENT, Ino, Node};
use super::open_file::FileId;
use super::state::{Disk, Result};

/// No file is longer. As on an ext4 with blocks of 4096 bytes.
pub(super) const MAX_FILE_BYTES: u64 = (u32::MAX as u64) * PAGE_BYTES;

/// The kernel moves no more in one call.
const MAX_TRANSFER_BYTES: usize = 0x7fff_f000;

impl Disk {
    /// Reads into `buf` from byte `offset` of the file on, or from where the file stands; returns
    /// how many bytes.
    ///
    /// # Errors
    ///
    /// As `pread(2)` has them; `EINVAL` also for direct I/O that is not aligned; `EIO` by chance.
    pub fn read(&mut self, file: FileId, offset: Option<u64>, buf: &mut [u8]) -> Result<usize> {
        let (ino, at, len) = self.check_read(file, offset, buf.len())?;
        let open = self.open_file(file)?;
        let is_direct = open.is_direct();
        if is_direct && at < self.content(ino)?.size() {
            self.check_alignment(at, buf)?;
        }
        self.may_fail(self.settings.errors.read)?;
        let len = match self.happens(self.settings.short_reads) {
            true => self.shortened(len, is_direct),
            false => len,
        };
        let rest = self.content(ino)?.size().saturating_sub(at).min(len as u64);
        if rest > 0 && self.happens(self.settings.bit_rot) {
            let (at, bit) = (at + self.rng.u64(0..rest), self.rng.u8(0..8));
            self.content_mut(ino)?.flip(at, bit);
        }
        let read = self.content_mut(ino)?.read(at, &mut buf[..len], !is_direct);
        self.advance(file, offset, at + read as u64);
        Ok(read)
    }

    /// As [`read`](Self::read) of what is in the page cache, without waiting for the device
    /// (`RWF_NOWAIT`).
    ///
    /// # Errors
    ///
    /// `EAGAIN` if the first byte is not there; else as `read`, but never `EIO`.
    pub fn read_cached(
        &mut self,
        file: FileId,
        offset: Option<u64>,
        buf: &mut [u8],
    ) -> Result<usize> {
        let (ino, at, len) = self.check_read(file, offset, buf.len())?;
        let is_direct = self.open_file(file)?.is_direct();
        let content = self.content_mut(ino)?;
        let cached = match is_direct {
            true => 0,
            false => content.cached_bytes(at, len),
        };
        if cached == 0 && len > 0 && at < content.size() {
            return Err(libc::EAGAIN);
        }
        let read = content.read(at, &mut buf[..cached], true);
        self.advance(file, offset, at + read as u64);
        Ok(read)
    }

    /// Writes `bytes` to byte `offset` of the file, or where the file stands; returns how many of
    /// them.
    ///
    /// # Errors
    ///
    /// As `pwrite(2)` has them; `EINVAL` also for direct I/O that is not aligned; `ENOSPC` if
    /// nothing fits; `EIO` by chance, and then some sectors of direct I/O may have been written.
    pub fn write(&mut self, file: FileId, offset: Option<u64>, bytes: &[u8]) -> Result<usize> {
        let open = self.usable(file)?;
        if !open.is_writable() {
            return Err(libc::EBADF);
        }
        let (ino, is_direct) = (open.ino, open.is_direct());
        let (is_append, position) = (open.is_append(), open.position);
        let is_durable = open.is_synchronous();
        let size = self.content(ino)?.size();
        let bytes = &bytes[..bytes.len().min(MAX_TRANSFER_BYTES)];
        let mut at = offset.unwrap_or(position);
        check_range(at, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(0);
        }
        if is_append {
            at = size;
        }
        if at >= MAX_FILE_BYTES {
            return Err(libc::EFBIG);
        }
        let fits = usize::try_from(MAX_FILE_BYTES - at).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(fits)];
        if is_direct {
            self.check_alignment(at, bytes)?;
        }
        let mut len = match self.happens(self.settings.short_writes) {
            true => self.shortened(bytes.len(), is_direct),
            false => bytes.len(),
        };
        len = self.fitting(ino, at, len)?;
        if self.happens(self.settings.errors.write) {
            if is_direct {
                // A failure does not extend the file.
                let within = usize::try_from(size.saturating_sub(at)).unwrap_or(usize::MAX);
                self.write_some_sectors(ino, at, &bytes[..len.min(within)]);
            }
            return Err(libc::EIO);
        }
        let range = at..at + len as u64;
        let fault = self.fault_of_write(&range, size);
        self.modify(ino, range.clone(), |content| match fault {
            None => content.write(at, &bytes[..len], !is_direct),
            Some(fault) => fault.write(content, at, &bytes[..len], !is_direct),
        });
        if is_durable {
            self.sync_range(file, pages_of(&range))?;
        }
        self.advance(file, offset, range.end);
        Ok(len)
    }

    /// Sets the size of an open file.
    ///
    /// # Errors
    ///
    /// As `ftruncate(2)` has them.
    pub fn truncate(&mut self, file: FileId, size: u64) -> Result<()> {
        if i64::try_from(size).is_err() {
            return Err(libc::EINVAL);
        }
        let open = self.usable(file)?;
        let ino = open.ino;
        if !open.is_writable() {
            return Err(libc::EINVAL);
        }
        if size > MAX_FILE_BYTES {
            return Err(libc::EFBIG);
        }
        self.set_size_of(ino, size);
        Ok(())
    }

    /// Allocates or frees the space of `len` bytes from `offset` on, by the `mode` of
    /// `fallocate(2)`: none, `KEEP_SIZE`, or `PUNCH_HOLE` with it.
    ///
    /// # Errors
    ///
    /// As `fallocate(2)` has them.
    pub fn allocate(&mut self, file: FileId, mode: i32, offset: u64, len: u64) -> Result<()> {
        const KEEP: i32 = libc::FALLOC_FL_KEEP_SIZE;
        const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | KEEP;
        let open = self.usable(file)?;
        let (ino, is_writable) = (open.ino, open.is_writable());
        if len == 0 || i64::try_from(offset).is_err() || i64::try_from(len).is_err() {
            return Err(libc::EINVAL);
        }
        if !matches!(mode, 0 | KEEP | PUNCH) {
            return Err(libc::EOPNOTSUPP);
        }
        if !is_writable {
            return Err(libc::EBADF);
        }
        // Neither is above 2⁶³ - 1.
        let range = offset..offset + len;
        if range.end > MAX_FILE_BYTES {
            return Err(libc::EFBIG);
        }
        if mode == PUNCH {
            self.modify(ino, range.clone(), |content| content.punch(range));
            return Ok(());
        }
        if self.content(ino)?.missing_pages(pages_of(&range)) > self.free_pages() {
            return Err(libc::ENOSPC);
        }
        self.modify(ino, range.clone(), |content| {
            content.preallocate(range, mode & KEEP == 0);
        });
        Ok(())
    }

    /// Copies up to `len` bytes from one file to another one, or to elsewhere in the same; returns
    /// how many.
    ///
    /// # Errors
    ///
    /// As `copy_file_range(2)` has them; `EINVAL` also if direct I/O of either is not aligned.
    pub fn copy_range(
        &mut self,
        from: FileId,
        from_offset: u64,
        to: FileId,
        to_offset: u64,
        len: usize,
    ) -> Result<usize> {
        let (source, target) = (self.usable(from)?, self.usable(to)?);
        let (source_ino, target_ino) = (source.ino, target.ino);
        let is_permitted = source.is_readable() && target.is_writable() && !target.is_append();
        let (reads_directly, writes_directly) = (source.is_direct(), target.is_direct());
        let source_size = self.content(source_ino)?.size();
        self.content(target_ino)?;
        if !is_permitted {
            return Err(libc::EBADF);
        }
        let bytes = len as u64;
        let is_outside = |offset: u64| i64::try_from(offset).is_err();
        if is_outside(from_offset) || is_outside(to_offset) {
            return Err(libc::EINVAL);
        }
        if from_offset.checked_add(bytes).is_none() || to_offset.checked_add(bytes).is_none() {
            return Err(libc::EOVERFLOW);
        }
        let bytes = bytes.min(source_size.saturating_sub(from_offset));
        if to_offset >= MAX_FILE_BYTES {
            return Err(libc::EFBIG);
        }
        let is_apart = from_offset + bytes <= to_offset || to_offset + bytes <= from_offset;
        if source_ino == target_ino && !is_apart {
            return Err(libc::EINVAL);
        }
        if bytes == 0 {
            return Ok(0);
        }
        if reads_directly {
            self.check_sectors(from_offset, bytes)?;
        }
        if writes_directly {
            self.check_sectors(to_offset, bytes)?;
        }
        let mut buf = vec![0; bytes.min(MAX_COPY_BYTES) as usize];
        self.may_fail(self.settings.errors.read)?;
        let read = self
            .content_mut(source_ino)?
            .read(from_offset, &mut buf, !reads_directly);
        if read == 0 {
            return Ok(0);
        }
        let len = self.fitting(target_ino, to_offset, read)?;
        self.may_fail(self.settings.errors.write)?;
        let range = to_offset..to_offset + len as u64;
        self.modify(target_ino, range, |content| {
            content.write(to_offset, &buf[..len], !writes_directly)
        });
        Ok(len)
    }

    /// Sets the size of a file, which is no longer than files may be.
    pub(super) fn set_size_of(&mut self, ino: Ino, size: u64) {
        self.modify(ino, size..size, |content| content.set_size(size));
    }

    /// Where a read begins, and how much of the buffer it may fill.
    fn check_read(
        &self,
        file: FileId,
        offset: Option<u64>,
        len: usize,
    ) -> Result<(Ino, u64, usize)> {
        let open = self.usable(file)?;
        if !open.is_readable() {
            return Err(libc::EBADF);
        }
        self.content(open.ino)?;
        let at = offset.unwrap_or(open.position);
        let len = len.min(MAX_TRANSFER_BYTES);
        check_range(at, len as u64)?;
        Ok((open.ino, at, len))
    }

    /// What direct I/O has to keep to.
    fn check_alignment(&self, at: u64, buf: &[u8]) -> Result<()> {
        self.check_sectors(at, buf.len() as u64)?;
        match (buf.as_ptr().addr() as u64).is_multiple_of(DIRECT_MEMORY_ALIGNMENT.into()) {
            true => Ok(()),
            false => Err(libc::EINVAL),
        }
    }

    fn check_sectors(&self, at: u64, len: u64) -> Result<()> {
        let sector = u64::from(self.settings.sector_bytes);
        match at.is_multiple_of(sector) && len.is_multiple_of(sector) {
            true => Ok(()),
            false => Err(libc::EINVAL),
        }
    }

    /// Less than `len`, but something.
    fn shortened(&mut self, len: usize, is_direct: bool) -> usize {
        let unit = match is_direct {
            true => self.settings.sector_bytes as usize,
            false => 1,
        };
        match len / unit {
            0 | 1 => len,
            units => unit * self.rng.usize(1..units),
        }
    }

    /// How many of `len` bytes at `at` there is space for.
    fn fitting(&self, ino: Ino, at: u64, len: usize) -> Result<usize> {
        let pages = pages_of(&(at..at + len as u64));
        let mut free = self.free_pages();
        if pages.end - pages.start <= free {
            return Ok(len);
        }
        let content = self.content(ino)?;
        if content.missing_pages(pages.clone()) <= free {
            return Ok(len);
        }
        for page in pages {
            if content.is_allocated(page) {
                continue;
            }
            if free == 0 {
                return match (page * PAGE_BYTES).saturating_sub(at) as usize {
                    0 => Err(libc::ENOSPC),
                    fits => Ok(fits),
                };
            }
            free -= 1;
        }
        Ok(len)
    }

    /// What the device does wrong in a write, if it does.
    fn fault_of_write(&mut self, range: &Range<u64>, size: u64) -> Option<WriteFault> {
        let is_corrupt = self.happens(self.settings.corrupt_writes);
        let is_misdirected = self.happens(self.settings.misdirected_writes);
        let bytes = u64::from(self.settings.sector_bytes);
        let sectors = range.start.div_ceil(bytes)..range.end / bytes;
        if !(is_corrupt || is_misdirected) || sectors.is_empty() {
            return None;
        }
        let sector = self.rng.u64(sectors) * bytes;
        let instead = match is_misdirected {
            true => Instead::At(self.rng.u64(0..(size / bytes).max(1)) * bytes),
            false => Instead::Xor(self.rng.u8(1..)),
        };
        Some(WriteFault {
            sector: sector..sector + bytes,
            instead,
        })
    }

    /// What a direct write does that fails.
    fn write_some_sectors(&mut self, ino: Ino, at: u64, bytes: &[u8]) {
        let sector = self.settings.sector_bytes as usize;
        let written: Vec<_> = bytes.chunks(sector).map(|_| self.rng.bool()).collect();
        let sectors = bytes.chunks(sector).zip(written).enumerate();
        for (number, (bytes, _)) in sectors.filter(|(_, (_, is_written))| *is_written) {
            let at = at + (number * sector) as u64;
            let range = at..at + bytes.len() as u64;
            self.modify(ino, range, |content| content.write(at, bytes, false));
        }
    }

    /// Changes what is in a file, in the bytes of `range`.
    fn modify(&mut self, ino: Ino, range: Range<u64>, change: impl FnOnce(&mut Content)) {
        let (now, loss) = (self.now, self.loss());
        let mut rng = self.rng.fork();
        self.change(ino, |inode| {
            if let Node::File(content) = &mut inode.node {
                content.write_back(range, loss, &mut rng);
                change(content);
            }
            (inode.modified, inode.changed) = (now, now);
        });
    }

    /// Has the file stand at `position`, if the last operation began where it stands.
    fn advance(&mut self, file: FileId, offset: Option<u64>, position: u64) {
        if offset.is_none()
            && let Some(open) = self.open.get_mut(&file)
        {
            open.position = position;
        }
    }
}

/// What goes wrong with a sector that is written.
struct WriteFault {
    /// The bytes of the file that it has.
    sector: Range<u64>,
    instead: Instead,
}

enum Instead {
    /// It is written to another place of the file.
    At(u64),
    /// Each byte is another one.
    Xor(u8),
}

impl WriteFault {
    fn write(&self, content: &mut Content, at: u64, bytes: &[u8], through_cache: bool) {
        let mut before = vec![0; (self.sector.end - self.sector.start) as usize];
        content.read(self.sector.start, &mut before, false);
        content.write(at, bytes, through_cache);
        let own = (self.sector.start - at) as usize..(self.sector.end - at) as usize;
        match self.instead {
            Instead::At(other) => {
                content.write(self.sector.start, &before, through_cache);
                content.write(other, &bytes[own], through_cache);
            }
            Instead::Xor(mask) => {
                let garbled: Vec<_> = bytes[own].iter().map(|byte| byte ^ mask).collect();
                content.write(self.sector.start, &garbled, through_cache);
            }
        }
    }
}

/// How much [`Disk::copy_range`] copies at once.
const MAX_COPY_BYTES: u64 = 1 << 20;

/// The kernel counts positions in 63 bits.
fn check_range(at: u64, len: u64) -> Result<()> {
    match at.checked_add(len).map(i64::try_from) {
        Some(Ok(_)) => Ok(()),
        _ => Err(libc::EINVAL),
    }
}
