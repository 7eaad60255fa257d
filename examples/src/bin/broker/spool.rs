//! The file that keeps what is left from one run of the broker to the next.
//!
//! Its records are frames: `G` with a topic and a group; `M` with a topic, a group or an empty
//! name, the attempts in two bytes, and the payload.

use std::io::{self, ErrorKind};
use std::path::Path;

use examples::broker::frames::{Fields, frame, malformed, put_name};
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::io::{BufferedFile, Directory, StreamReaderBuilder, StreamWriterBuilder};

use crate::queues::Broker;

/// Gives the broker what the last run has left, if it has left anything.
pub async fn load(broker: &Broker, path: &Path) -> io::Result<()> {
    let file = match BufferedFile::open(path).await {
        Ok(file) => file,
        Err(error) => {
            let error = io::Error::from(error);
            return match error.kind() {
                ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            };
        }
    };
    let mut bytes = Vec::new();
    let mut reader = StreamReaderBuilder::new(file).build();
    reader.read_to_end(&mut bytes).await?;
    reader.close().await?;
    let mut rest = &*bytes;
    while !rest.is_empty() {
        let record = rest
            .split_first_chunk()
            .and_then(|(length, rest)| rest.split_at_checked(u32::from_le_bytes(*length) as usize));
        let (record, after) = record.ok_or_else(|| malformed("a spool that is cut off"))?;
        read_record(broker, record)?;
        rest = after;
    }
    Ok(())
}

fn read_record(broker: &Broker, record: &[u8]) -> io::Result<()> {
    let mut fields = Fields(record);
    let kind = fields.byte()?;
    let (topic, group) = (fields.name()?, fields.name()?);
    let left = match kind {
        b'G' => None,
        b'M' => Some((u16::from_le_bytes(fields.array()?), fields.rest())),
        _ => return Err(malformed("a spool with an unknown record")),
    };
    broker.restore(topic, group, left);
    Ok(())
}

/// Replaces the file by what is left now, in such a way that a crash leaves one or the other.
pub async fn save(broker: &Broker, path: &Path) -> io::Result<()> {
    let mut bytes = Vec::new();
    broker.each_left(|topic, group, left| {
        frame(&mut bytes, |out| {
            out.push(if left.is_some() { b'M' } else { b'G' });
            put_name(out, topic);
            put_name(out, group);
            if let Some((attempts, payload)) = left {
                out.extend_from_slice(&attempts.to_le_bytes());
                out.extend_from_slice(payload);
            }
        });
    });
    let mut new = path.to_owned();
    new.as_mut_os_string().push(".new");
    let file = BufferedFile::create(&new).await?;
    // Closing it brings it to the device.
    let mut writer = StreamWriterBuilder::new(file).build();
    writer.write_all(&bytes).await?;
    writer.close().await?;
    glommio::io::rename(&new, path).await?;
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let directory = Directory::open(directory).await?;
    directory.sync().await?;
    Ok(directory.close().await?)
}
