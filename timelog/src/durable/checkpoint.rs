//! Checkpoints: the visible rows of a stretch of operations, in time order, and its deletes.
//!
//! ```text
//!   header 4 KiB │ pages of deletes, of up to 1 MiB │ pages of rows, of up to 1 MiB
//!
//!   page:   0       4      8       12         16     20          28         32
//!          ┌───────┬──────┬───────┬──────────┬──────┬───────────┬──────────┬──────────────────────┐
//!          │ magic │ kind │ items │ checksum │ page │ last      │ checksum │ rows: all timestamps,│
//!          │       │      │       │ payload  │ no.  │ operation │ head     │ then all values      │
//!          └───────┴──────┴───────┴──────────┴──────┴───────────┴──────────┴──────────────────────┘
//! ```
//!
//! It is written under another name, and gets its own when all of it is durable. So one that has
//! its name is whole, and whatever is wrong in it is damage.

use std::ops::Range;
use std::rc::Rc;

use glommio::executor;

use super::Record;
use super::disk::{File, Folder};
use super::error::Error;
use super::format::{
    CHECKPOINT_MAGIC, Kind, PAGE_BYTES, PAGE_HEAD, ROW_PAGE_BYTES, UNIT, file_head,
    parse_file_head, round_up, ts_at, u32_at, u64_at,
};
use super::read_ahead::ReadAhead;
use super::replay::Replay;
use crate::{Snapshot, Ts};

const PAGE_MAGIC: u32 = u32::from_le_bytes(*b"TPAG");
const DELETES: u32 = 1;
const ROWS: u32 = 2;
const DELETE_BYTES: usize = 2 * size_of::<Ts>();

pub(super) const NEW_NAME: &str = "checkpoint.new";

/// The operations after `from`, up to and with `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stretch {
    pub from: u64,
    pub to: u64,
}

impl Stretch {
    pub fn name(self) -> String {
        format!("checkpoint-{:016x}-{:016x}", self.from, self.to)
    }

    pub fn of_name(name: &str) -> Option<Self> {
        let (from, to) = name.strip_prefix("checkpoint-")?.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let (from, to) = (number(from)?, number(to)?);
        Some(Self { from, to }).filter(|stretch| stretch.name() == name)
    }
}

/// A checkpoint that has its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checkpoint {
    pub stretch: Stretch,
    pub rows: u64,
}

/// What a checkpoint is to have, besides rows.
pub(super) struct Content<'a, V> {
    pub stretch: Stretch,
    pub snapshot: &'a Snapshot<V>,
    pub deletes: Vec<(Ts, Ts)>,
    pub floor: Option<Ts>,
}

/// Rows of a page: as a page is written in one go, it is small enough not to delay others.
fn row_page<V: Record>() -> usize {
    const WRITTEN_BYTES: usize = 128 << 10;
    let rows = (WRITTEN_BYTES - PAGE_HEAD) / Replay::<V>::row_bytes();
    rows.max(1)
}

/// Writes a checkpoint and gives it its name. When this is `Ok`, it is durable. Gives up before the
/// next page once `is_stopped`.
pub(super) async fn write<V: Record>(
    folder: &Folder,
    kind: Kind,
    content: Content<'_, V>,
    is_stopped: impl Fn() -> bool,
) -> Result<Option<Checkpoint>, Error> {
    let file = folder.create(NEW_NAME).await?;
    let written = write_pages(&file, kind, &content, is_stopped).await;
    let Some(rows) = written? else {
        return file.close().await.map(|()| None);
    };
    file.sync().await?;
    file.close().await?;
    folder.rename(NEW_NAME, &content.stretch.name()).await?;
    folder.sync().await?;
    Ok(Some(Checkpoint {
        stretch: content.stretch,
        rows,
    }))
}

async fn write_pages<V: Record>(
    file: &File,
    kind: Kind,
    content: &Content<'_, V>,
    is_stopped: impl Fn() -> bool,
) -> Result<Option<u64>, Error> {
    let mut offset = UNIT as u64;
    let (mut pages, mut rows) = (0, 0);
    let deletes = union(content.deletes.clone());
    for deletes in deletes.chunks(ROW_PAGE_BYTES / DELETE_BYTES) {
        let mut page = vec![0; PAGE_HEAD];
        for (first, last) in deletes {
            page.extend(first.to_le_bytes());
            page.extend(last.to_le_bytes());
        }
        let page = finish_page(page, DELETES, deletes.len(), pages, content.stretch.to);
        file.write(&page, offset).await?;
        (offset, pages) = (offset + page.len() as u64, pages + 1);
    }
    let mut source = content.snapshot.range(..);
    loop {
        let (mut spans, mut count) = (Vec::new(), 0);
        while count < row_page::<V>()
            && let Some(span) = source.next_slice_of(row_page::<V>() - count)
        {
            count += span.len();
            spans.push(span);
        }
        if count == 0 {
            break;
        }
        if is_stopped() {
            return Ok(None);
        }
        let mut page = vec![0; PAGE_HEAD + count * Replay::<V>::row_bytes()];
        let (timestamps, values) = page[PAGE_HEAD..].split_at_mut(count * size_of::<Ts>());
        let mut row = 0;
        for span in spans {
            let places = timestamps[row * size_of::<Ts>()..].chunks_exact_mut(size_of::<Ts>());
            for (place, ts) in places.zip(span.timestamps()) {
                place.copy_from_slice(&ts.to_le_bytes());
            }
            for value in span.values() {
                value.encode(&mut values[row * V::BYTES..][..V::BYTES]);
                row += 1;
            }
        }
        let page = finish_page(page, ROWS, count, pages, content.stretch.to);
        executor().yield_task_queue_now().await;
        file.write(&page, offset).await?;
        (offset, pages, rows) = (offset + page.len() as u64, pages + 1, rows + count as u64);
    }
    let numbers = [
        content.stretch.from,
        content.stretch.to,
        content.floor.is_some().into(),
        content.floor.unwrap_or(0) as u64,
        rows,
        pages.into(),
    ];
    let head = file_head(CHECKPOINT_MAGIC, kind, &numbers);
    file.write(&head, 0).await?;
    Ok(Some(rows))
}

/// Fills in the head of a page, and pads it.
fn finish_page(mut page: Vec<u8>, kind: u32, items: usize, number: u32, to: u64) -> Vec<u8> {
    let mut head = Vec::with_capacity(PAGE_HEAD);
    head.extend(PAGE_MAGIC.to_le_bytes());
    head.extend(kind.to_le_bytes());
    head.extend((items as u32).to_le_bytes());
    head.extend(crc32fast::hash(&page[PAGE_HEAD..]).to_le_bytes());
    head.extend(number.to_le_bytes());
    head.extend(to.to_le_bytes());
    head.extend(crc32fast::hash(&head).to_le_bytes());
    page[..PAGE_HEAD].copy_from_slice(&head);
    page.resize(round_up(page.len()), 0);
    page
}

/// The same timestamps in disjoint ranges: all of them hide what was there before the stretch.
fn union(mut ranges: Vec<(Ts, Ts)>) -> Vec<(Ts, Ts)> {
    ranges.sort_unstable();
    let mut union: Vec<(Ts, Ts)> = Vec::new();
    for (first, last) in ranges {
        match union.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => union.push((first, last)),
        }
    }
    union
}

/// Adds what a checkpoint has to a log that has everything before it.
pub(super) async fn load<V: Record>(
    file: Rc<File>,
    kind: Kind,
    stretch: Stretch,
    replay: &mut Replay<V>,
) -> Result<Checkpoint, Error> {
    let path = file.path().to_owned();
    let size = file.size().await?;
    let mut reader = ReadAhead::new(file, size, false);
    let head = reader.head().await?;
    let [from, to, has_floor, floor, rows, pages] =
        parse_file_head(&head, CHECKPOINT_MAGIC, kind, &path)?;
    if (Stretch { from, to }) != stretch {
        return Err(Error::corrupt(&path, 24, "it is not what its name says"));
    }
    if has_floor != 0 {
        replay.raise_floor(floor as Ts);
    }
    let (mut loaded, mut offset) = (0, UNIT as u64);
    for number in 0..pages {
        let damaged = || Error::corrupt(&path, offset, "the checksum of a page");
        let head = reader.at(offset, PAGE_HEAD).await?;
        let bytes = page_bytes::<V>(head).ok_or_else(damaged)?;
        let page = reader.at(offset, bytes).await?;
        let (kind, items, payload) = page_content::<V>(page, number, to).ok_or_else(damaged)?;
        let start = offset;
        offset += round_up(PAGE_HEAD + payload.len()) as u64;
        match kind {
            DELETES => {
                for range in payload.chunks_exact(DELETE_BYTES) {
                    let (first, last) = (ts_at(range, 0), ts_at(range, size_of::<Ts>()));
                    if first > last {
                        return Err(Error::corrupt(&path, start, "a delete of no timestamp"));
                    }
                    replay.delete(first, last);
                }
            }
            _ => {
                loaded += items as u64;
                let (timestamps, values) = payload.split_at(items * size_of::<Ts>());
                let columns = |rows: Range<usize>| {
                    let ts = rows.start * size_of::<Ts>()..rows.end * size_of::<Ts>();
                    let ts = timestamps[ts].chunks_exact(size_of::<Ts>());
                    (
                        ts.map(|ts| ts_at(ts, 0)).collect(),
                        decode_all(values, rows),
                    )
                };
                replay.rows(0..items, columns).await?;
            }
        }
    }
    if loaded != rows {
        let what = format!("it has {loaded} rows, its header says {rows}");
        return Err(Error::corrupt(&path, 24, what));
    }
    replay.applied = to;
    Ok(Checkpoint { stretch, rows })
}

/// Values that lie one after the other.
fn decode_all<V: Record>(bytes: &[u8], rows: Range<usize>) -> Vec<V> {
    if V::BYTES == 0 {
        return rows.map(|_| V::decode(&[])).collect();
    }
    let bytes = &bytes[rows.start * V::BYTES..rows.end * V::BYTES];
    bytes.chunks_exact(V::BYTES).map(V::decode).collect()
}

fn item_bytes<V: Record>(kind: u32) -> Option<usize> {
    match kind {
        DELETES => Some(DELETE_BYTES),
        ROWS => Some(Replay::<V>::row_bytes()),
        _ => None,
    }
}

/// The size of a page that begins with a head, if it may be one.
fn page_bytes<V: Record>(head: &[u8]) -> Option<usize> {
    let head = head.get(..PAGE_HEAD)?;
    let payload = (u32_at(head, 8) as usize).checked_mul(item_bytes::<V>(u32_at(head, 4))?)?;
    let bytes = payload.checked_add(PAGE_HEAD)?;
    (bytes <= PAGE_BYTES).then_some(bytes)
}

/// Kind, number of items and payload, if the page is whole and in its place.
fn page_content<V: Record>(page: &[u8], number: u64, to: u64) -> Option<(u32, usize, &[u8])> {
    let head = page.get(..PAGE_HEAD)?;
    let (kind, items) = (u32_at(head, 4), u32_at(head, 8) as usize);
    let is_right = u32_at(head, 0) == PAGE_MAGIC
        && u32_at(head, 28) == crc32fast::hash(&head[..28])
        && u64::from(u32_at(head, 16)) == number
        && u64_at(head, 20) == to;
    let payload = page.get(PAGE_HEAD..page_bytes::<V>(head)?)?;
    let is_whole = is_right && crc32fast::hash(payload) == u32_at(head, 12);
    is_whole.then_some((kind, items, payload))
}
