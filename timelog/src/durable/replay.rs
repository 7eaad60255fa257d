//! Operations from files, done again on a log in memory.

use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use glommio::{executor, yield_if_needed};

use super::disk::File;
use super::error::Error;
use super::format::{BLOCK_HEAD, BlockHead, Operation, UNIT, next_operation, ts_at};
use super::manifest::Kind;
use super::read_ahead::ReadAhead;
use crate::mem_log::Bulk;
use crate::{MemLog, Progress, Record, Seq, Ts};

/// Rows that are done between two looks at the time, and in the background, where every task that is
/// ready runs before the next ones.
const ROWS: usize = 4096;
const BACKGROUND_ROWS: usize = 1024;

/// A log in memory, and how far it is.
#[derive(Debug)]
pub(super) struct Replay<V> {
    pub kind: Kind,
    mem: MemLog<V>,
    memory_limit_bytes: Option<usize>,
    /// Rows that will be the end of it.
    bulk: Bulk<V>,
    /// The last operation that it has.
    pub applied: u64,
    /// The deletes of the operations so far, if they are wanted.
    pub deletes: Option<Vec<(Ts, Ts)>>,
    pub floor: Option<Ts>,
}

/// Where the log in a file of the write-ahead log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WalEnd {
    pub offset: u64,
    /// Whether a block begins there that is not whole, as a crash leaves behind.
    pub is_torn: bool,
}

impl<V: Record> Replay<V> {
    pub fn new(
        mut config: crate::Config,
        kind: &Kind,
        applied: u64,
        wants_deletes: bool,
    ) -> Result<Self, Error> {
        // What was accepted is loaded: below a floor of today there may be rows of yesterday, and a
        // limit of today may be below what a checkpoint has in one page.
        config.floor = None;
        let memory_limit_bytes = config.memory_limit_bytes.take();
        Ok(Self {
            kind: kind.clone(),
            mem: MemLog::new(config)?,
            memory_limit_bytes,
            bulk: Bulk::default(),
            applied,
            deletes: wants_deletes.then(Vec::new),
            floor: None,
        })
    }

    /// The log with all that was done.
    pub fn mem(&mut self) -> &mut MemLog<V> {
        self.mem.add_segment(&mut self.bulk);
        &mut self.mem
    }

    /// The log as it goes on after the operations so far.
    pub fn into_mem(mut self) -> MemLog<V> {
        let applied = Seq(self.applied);
        self.mem().set_seq(applied);
        self.mem.set_memory_limit(self.memory_limit_bytes);
        self.mem
    }

    pub fn delete(&mut self, first: Ts, last: Ts) {
        if let Some(deletes) = &mut self.deletes {
            deletes.push((first, last));
        }
        let deleted = self.mem().delete(first..=last);
        deleted.expect("the range was checked to be one");
    }

    pub fn raise_floor(&mut self, ts: Ts) {
        self.mem().raise_floor(ts);
        self.floor = self.floor.max(Some(ts));
    }

    /// Adds rows in pieces: to the end of the log if they are after all others, else as any writer
    /// does, and moves them to segments.
    pub async fn rows(
        &mut self,
        places: Range<usize>,
        columns: impl Fn(Range<usize>) -> (Vec<Ts>, Vec<V>),
    ) -> Result<(), Error> {
        let page_rows = self.mem.page_rows();
        for start in places.clone().step_by(page_rows) {
            let end = places.end.min(start + page_rows);
            let (timestamps, values) = columns(start..end);
            let added = self.mem.add_page(&mut self.bulk, timestamps, values);
            if let Err((timestamps, values)) = added {
                let rows = timestamps.into_iter().zip(values);
                self.insert(rows.collect()).await?;
            }
            self.pause().await;
        }
        Ok(())
    }

    async fn insert(&mut self, rows: Vec<(Ts, V)>) -> Result<(), Error> {
        let most = if self.is_background() {
            BACKGROUND_ROWS
        } else {
            ROWS
        };
        let mut rows = rows.into_iter();
        while rows.len() > 0 {
            let piece: Vec<_> = rows.by_ref().take(most).collect();
            let added = self.mem().extend(piece);
            added.map_err(|refused| Error::Write(refused.kind))?;
            while self.mem.step(most) == Progress::More {
                self.pause().await;
            }
            self.pause().await;
        }
        Ok(())
    }

    /// In pieces, since a block is as large as a batch may be.
    pub async fn checksum(&self, payload: &[u8]) -> u32 {
        const PIECE: usize = 128 << 10;
        let mut hasher = crc32fast::Hasher::new();
        for piece in payload.chunks(PIECE) {
            hasher.update(piece);
            self.pause().await;
        }
        hasher.finalize()
    }

    /// Whether a log is open meanwhile.
    fn is_background(&self) -> bool {
        self.deletes.is_some()
    }

    async fn pause(&self) {
        if self.is_background() {
            executor().yield_task_queue_now().await;
        } else {
            yield_if_needed().await;
        }
    }

    /// Does the operations of a block, but those that are done already and those from `end` on. An
    /// error names its place.
    pub async fn block(
        &mut self,
        head: &BlockHead,
        payload: &[u8],
        end: u64,
        (path, offset): (&Path, u64),
    ) -> Result<(), Error> {
        let corrupt = |what| Error::corrupt(path, offset, what);
        let row_bytes = self.kind.row_bytes::<V>();
        let mut rest = payload;
        let mut next = head.first;
        while !rest.is_empty() {
            let (operation, count) = next_operation(&mut rest, row_bytes).map_err(corrupt)?;
            let (first, last) = (next, next + count);
            next = last;
            if first >= end {
                break;
            }
            if count == 0 || last <= self.applied + 1 {
                continue;
            }
            match operation {
                Operation::Rows(bytes) => {
                    let done = (self.applied + 1 - first) as usize;
                    let rows = (end.min(last) - first) as usize;
                    let columns = |places: Range<usize>| {
                        let bytes = &bytes[places.start * row_bytes..places.end * row_bytes];
                        let rows = bytes.chunks_exact(row_bytes);
                        let values = rows.clone().map(|row| V::decode(&row[size_of::<Ts>()..]));
                        (rows.map(|row| ts_at(row, 0)).collect(), values.collect())
                    };
                    self.rows(done..rows, columns).await?;
                }
                Operation::Delete(first, last) => self.delete(first, last),
                Operation::Floor(ts) => self.raise_floor(ts),
            }
            self.applied = end.min(last) - 1;
        }
        if next != head.first + u64::from(head.operations) && rest.is_empty() {
            return Err(corrupt("the number of operations"));
        }
        Ok(())
    }

    /// Does what is in a file of the write-ahead log before the operation `end`. If that is not known,
    /// the file is one that was written to, and may end in a block that is not whole.
    ///
    /// In such a file the blocks that were in flight together may be torn or missing, each for
    /// itself. What is not whole ends the log, whole blocks after it included, unless one of those
    /// was begun when it was durable.
    pub async fn wal(
        &mut self,
        file: Rc<File>,
        salt: u64,
        end: Option<u64>,
    ) -> Result<WalEnd, Error> {
        let path = file.path().to_owned();
        let size = file.size().await?;
        let mut reader = ReadAhead::new(file, size, self.is_background());
        let bound = end.unwrap_or(u64::MAX);
        let (mut offset, mut number, mut next) = (UNIT as u64, 0, self.applied + 1);
        let mut is_torn = false;
        while next < bound {
            let bytes = reader.at(offset, UNIT).await?;
            let head = BlockHead::parse(bytes, salt).filter(|head| head.number == number);
            let Some(head) = head else {
                break;
            };
            if head.first > next {
                return Err(missing(&path, offset, next, head.first));
            }
            let bytes = reader.at(offset, head.len()).await?;
            let length = BLOCK_HEAD + head.payload_bytes as usize;
            let Some(payload) = bytes.get(BLOCK_HEAD..length) else {
                is_torn = true;
                break;
            };
            if self.checksum(payload).await != head.payload_checksum {
                is_torn = true;
                break;
            }
            self.block(&head, payload, bound, (&path, offset)).await?;
            next = head.first + u64::from(head.operations);
            offset += head.len() as u64;
            number += 1;
        }
        match end {
            Some(end) if next < end => Err(missing(&path, offset, next, end)),
            Some(_) => Ok(WalEnd {
                offset,
                is_torn: false,
            }),
            None => {
                let mut later = offset + UNIT as u64;
                while later < size {
                    let bytes = reader.at(later, UNIT).await?;
                    let head = BlockHead::parse(bytes, salt);
                    if let Some(head) = head.filter(|head| head.number > number) {
                        if head.durable > number {
                            let durable = head.durable;
                            let what = format!(
                                "block {number} is not whole, and one that follows says that {durable} were"
                            );
                            return Err(Error::corrupt(&path, offset, what));
                        }
                        is_torn = true;
                    }
                    later += UNIT as u64;
                    yield_if_needed().await;
                }
                Ok(WalEnd { offset, is_torn })
            }
        }
    }
}

pub(super) fn missing(path: &Path, offset: u64, from: u64, to: u64) -> Error {
    Error::corrupt(
        path,
        offset,
        format!("the operations {from} to {} are missing", to - 1),
    )
}
