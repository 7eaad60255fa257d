//! The manifest: which files are the log, and what they must have. Whatever it does not list is not
//! the log, and what it lists is there as a whole, or something has damaged it.
//!
//! It is text, in whole units, and is replaced as one: a crash leaves the one before or this one.
//!
//! ```text
//!   timelog 3                           version of the format
//!   identity 5ab0..                     of this log, in the header of each file
//!   edition 12                          how often it was replaced
//!   unit nanos
//!   value 16 (f64, i64)                 bytes and type
//!   last 1234                           an operation that was durable
//!   closed no
//!   checkpoint 0 1000 77aa.. 24576 980  from, to, salt, bytes of the file, rows
//!   wal 7 31c0.. 33554432 1201          number, salt, bytes of the file, its end
//!   wal 8 9e02.. 33554432 0
//!   end 5f3759df                        CRC-32 of all lines before
//! ```
//!
//! The end of a file of the write-ahead log is the operation after its last one. One that is 0 is not
//! known: the file is written to, or is prepared to be the next one. In a log that was closed all ends
//! are known, and one of 0 says that the file has nothing.

use std::fmt::Write;
use std::path::Path;

use super::disk::Folder;
use super::error::Error;
use super::format::{MANIFEST as NAME, VERSION, round_up};
use crate::{Record, TimeUnit};

/// The most that is read of one.
const MOST_BYTES: usize = 16 << 20;

/// What the rows of a log are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub record_bytes: usize,
    pub type_name: String,
    pub unit: TimeUnit,
}

impl Kind {
    pub fn of<V: Record>(unit: TimeUnit) -> Self {
        Self {
            record_bytes: V::BYTES,
            type_name: V::type_name().replace('\n', " "),
            unit,
        }
    }

    /// The bytes of a value: a constant, but for [`Raw`](crate::Raw).
    #[inline]
    pub fn value_bytes<V: Record>(&self) -> usize {
        if V::IS_RAW {
            self.record_bytes
        } else {
            V::BYTES
        }
    }

    /// The bytes of a row.
    #[inline]
    pub fn row_bytes<V: Record>(&self) -> usize {
        size_of::<crate::Ts>() + self.value_bytes::<V>()
    }
}

/// A checkpoint of the operations after `from`, up to and with `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CheckpointFile {
    pub from: u64,
    pub to: u64,
    pub salt: u64,
    pub bytes: u64,
    pub rows: u64,
}

impl CheckpointFile {
    pub fn name(&self) -> String {
        format!("checkpoint-{:016x}-{:016x}", self.from, self.to)
    }
}

/// A file of the write-ahead log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WalFile {
    pub number: u64,
    pub salt: u64,
    /// At least: the one that is written to grows when no other is ready.
    pub bytes: u64,
    /// The operation after its last one, or 0.
    pub end: u64,
}

impl WalFile {
    pub fn name(&self) -> String {
        format!("wal-{:016x}", self.number)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    pub identity: u64,
    pub edition: u64,
    pub kind: Kind,
    pub last: u64,
    pub is_closed: bool,
    pub checkpoints: Vec<CheckpointFile>,
    pub wals: Vec<WalFile>,
    /// Of a log of several: the identity of each, or 0 before it was made.
    pub shards: Vec<u64>,
}

/// A number that no other log, and no other use of a file, has.
pub(super) fn unique() -> u64 {
    glommio::rng_seed().max(1)
}

impl Manifest {
    /// Of a log that has nothing yet.
    pub fn new(kind: Kind) -> Self {
        Self {
            identity: unique(),
            edition: 0,
            kind,
            last: 0,
            is_closed: false,
            checkpoints: Vec::new(),
            wals: Vec::new(),
            shards: Vec::new(),
        }
    }

    /// The last operation that checkpoints have.
    pub fn covered(&self) -> u64 {
        self.checkpoints.last().map_or(0, |it| it.to)
    }

    /// The files of the write-ahead log that are full.
    pub fn full_wals(&self) -> impl Iterator<Item = &WalFile> {
        self.wals.iter().filter(|it| it.end > 0)
    }

    pub fn next_number(&self) -> u64 {
        self.wals.last().map_or(1, |it| it.number + 1)
    }

    /// The names of its files.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let checkpoints = self.checkpoints.iter().map(CheckpointFile::name);
        checkpoints.chain(self.wals.iter().map(WalFile::name))
    }

    /// The one in a directory, if there is one.
    pub async fn read(folder: &Folder) -> Result<Option<Self>, Error> {
        let file = match folder.open_existing(NAME).await {
            Err(error) if error.is_not_found() => return Ok(None),
            opened => opened?,
        };
        let bytes = (file.size().await?).min(MOST_BYTES as u64) as usize;
        let bytes = file.read(0, bytes).await?;
        let path = file.path().to_owned();
        let parsed = parse(&bytes, &path)?;
        drop(bytes);
        file.close().await?;
        Ok(Some(parsed))
    }

    /// Writes it in the place of the one before.
    pub async fn write(&self, folder: &Folder) -> Result<(), Error> {
        self.stage(folder).await?;
        self.publish(folder).await
    }

    /// Writes it, and makes it durable as what becomes the next one.
    pub async fn stage(&self, folder: &Folder) -> Result<(), Error> {
        folder.stage(NAME, &self.encode()).await
    }

    /// Puts the one that was staged in the place of the one before.
    pub async fn publish(&self, folder: &Folder) -> Result<(), Error> {
        folder.publish(NAME).await
    }

    /// Whether values of this type and timestamps of this unit are what it has.
    pub fn check<V: Record>(&self, unit: TimeUnit, path: &Path) -> Result<(), Error> {
        let (found, wanted) = (&self.kind, Kind::of::<V>(unit));
        let format = |what| {
            let path = path.join(NAME);
            Err(Error::Format { path, what })
        };
        let is_of_type = found.record_bytes == wanted.record_bytes
            && found.type_name == wanted.type_name
            || V::IS_RAW;
        if !is_of_type {
            return format(format!(
                "its values are {} of {} bytes, not {} of {}",
                found.type_name, found.record_bytes, wanted.type_name, wanted.record_bytes
            ));
        }
        if found.unit != unit && !V::IS_RAW {
            let found = found.unit;
            return format(format!("its timestamps are in {found}, not {unit}"));
        }
        Ok(())
    }

    /// Whether it is of one log, and not of several in directories of their own.
    pub fn check_alone(&self, path: &Path) -> Result<(), Error> {
        match self.shards.len() {
            0 => Ok(()),
            shards => {
                let path = path.join(NAME);
                let what =
                    format!("it is of a log of {shards} shards, in directories of their own");
                Err(Error::Format { path, what })
            }
        }
    }

    fn encode(&self) -> Vec<u8> {
        let Kind {
            record_bytes,
            type_name,
            unit,
        } = &self.kind;
        let mut text = format!(
            "timelog {VERSION}\nidentity {:016x}\nedition {}\nunit {unit}\nvalue {record_bytes} {type_name}\nlast {}\nclosed {}\n",
            self.identity,
            self.edition,
            self.last,
            if self.is_closed { "yes" } else { "no" },
        );
        for it in &self.checkpoints {
            let (from, to, salt, bytes, rows) = (it.from, it.to, it.salt, it.bytes, it.rows);
            let _ = writeln!(text, "checkpoint {from} {to} {salt:016x} {bytes} {rows}");
        }
        for it in &self.wals {
            let (number, salt, bytes, end) = (it.number, it.salt, it.bytes, it.end);
            let _ = writeln!(text, "wal {number} {salt:016x} {bytes} {end}");
        }
        for identity in &self.shards {
            let _ = writeln!(text, "shard {identity:016x}");
        }
        let checksum = crc32fast::hash(text.as_bytes());
        let _ = writeln!(text, "end {checksum:08x}");
        let mut bytes = text.into_bytes();
        bytes.resize(round_up(bytes.len()), b'\n');
        bytes
    }
}

fn parse(bytes: &[u8], path: &Path) -> Result<Manifest, Error> {
    let corrupt = |what| Err(Error::corrupt(path, 0, what));
    let text = String::from_utf8_lossy(bytes);
    let Some((lines, end)) = text.rsplit_once("\nend ") else {
        return corrupt("it has no last line");
    };
    let lines = &text[..lines.len() + 1];
    let checksum = end.get(..8).and_then(|it| u32::from_str_radix(it, 16).ok());
    if checksum != Some(crc32fast::hash(lines.as_bytes())) {
        return corrupt("its checksum");
    }
    let version = lines
        .lines()
        .next()
        .and_then(|it| it.strip_prefix("timelog "));
    if version != Some(&VERSION.to_string()[..]) {
        let version = version.unwrap_or("?");
        let what = format!("its format has version {version}, this program reads {VERSION}");
        let path = path.to_owned();
        return Err(Error::Format { path, what });
    }
    match parse_lines(lines) {
        Some(manifest) => Ok(manifest),
        None => corrupt("a line of no known kind"),
    }
}

fn parse_lines(text: &str) -> Option<Manifest> {
    let mut manifest = Manifest::new(Kind::of::<()>(TimeUnit::Nanos));
    for line in text.lines().skip(1) {
        let (key, rest) = line.split_once(' ')?;
        match key {
            "edition" => [manifest.edition] = numbers(rest, None)?,
            "last" => [manifest.last] = numbers(rest, None)?,
            "closed" => manifest.is_closed = rest == "yes",
            "identity" => [manifest.identity] = numbers(rest, Some(0))?,
            "shard" => manifest.shards.extend(numbers::<1>(rest, Some(0))?),
            "unit" => manifest.kind.unit = rest.parse().ok()?,
            "value" => {
                let (bytes, name) = rest.split_once(' ')?;
                manifest.kind.record_bytes = bytes.parse().ok()?;
                name.clone_into(&mut manifest.kind.type_name);
            }
            "checkpoint" => {
                let [from, to, salt, bytes, rows] = numbers(rest, Some(2))?;
                manifest.checkpoints.push(CheckpointFile {
                    from,
                    to,
                    salt,
                    bytes,
                    rows,
                });
            }
            "wal" => {
                let [number, salt, bytes, end] = numbers(rest, Some(1))?;
                manifest.wals.push(WalFile {
                    number,
                    salt,
                    bytes,
                    end,
                });
            }
            _ => return None,
        }
    }
    Some(manifest)
}

/// The numbers of a line, of which one may be hexadecimal.
fn numbers<const N: usize>(text: &str, hexadecimal: Option<usize>) -> Option<[u64; N]> {
    let mut words = text.split(' ');
    let mut numbers = [0; N];
    for (index, number) in numbers.iter_mut().enumerate() {
        let radix = if hexadecimal == Some(index) { 16 } else { 10 };
        *number = u64::from_str_radix(words.next()?, radix).ok()?;
    }
    Some(numbers)
}
