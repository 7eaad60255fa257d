//! Frames: a length in four bytes, and what it counts.

use std::io;

/// Appends what `fill` does, with its length in front.
pub fn frame(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    fill(out);
    let length = (out.len() - start - LENGTH_BYTES) as u32;
    out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
}

/// The length of the frame at the beginning of `bytes`, without these four bytes. `None` if there
/// are not that many yet.
///
/// # Errors
///
/// If it is more than [`FRAME_BYTES_MAX`].
pub fn frame_length(bytes: &[u8]) -> io::Result<Option<usize>> {
    let Some(length) = bytes.first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    match u32::from_le_bytes(*length) as usize {
        length if length > FRAME_BYTES_MAX => Err(malformed("a frame of more than a mebibyte")),
        length => Ok(Some(length)),
    }
}

/// Appends a name of at most [`NAME_BYTES_MAX`] bytes.
pub fn put_name(out: &mut Vec<u8>, name: &str) {
    out.push(name.len() as u8);
    out.extend_from_slice(name.as_bytes());
}

/// The peer sent what no peer of ours sends.
pub fn malformed(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// What is left of a frame. Each method takes a field, and fails if the frame is too short for it.
#[derive(Debug)]
pub struct Fields<'a>(pub &'a [u8]);

#[expect(missing_docs, reason = "they are named for what they take")]
impl<'a> Fields<'a> {
    pub fn byte(&mut self) -> io::Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk().ok_or_else(cut_off)?;
        self.0 = rest;
        Ok(*array)
    }

    pub fn name(&mut self) -> io::Result<&'a str> {
        let length = usize::from(self.byte()?);
        let (name, rest) = self.0.split_at_checked(length).ok_or_else(cut_off)?;
        self.0 = rest;
        str::from_utf8(name).map_err(|_| malformed("a name that is not UTF-8"))
    }

    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub fn end(self) -> io::Result<()> {
        match self.0 {
            [] => Ok(()),
            _ => Err(malformed("a frame that is too long")),
        }
    }
}

fn cut_off() -> io::Error {
    malformed("a frame that is too short")
}

/// The longest name.
pub const NAME_BYTES_MAX: usize = u8::MAX as usize;
/// Of the length in front of a frame.
pub const LENGTH_BYTES: usize = 4;
/// The longest frame.
pub const FRAME_BYTES_MAX: usize = 1 << 20;
