//! Reading the small text files in which the kernel describes the machine.
//!
//! Two shapes are understood: one number, and a list of ids such as `0-3,8`. A
//! file that cannot be read gives an error of the same kind that names the file
//! and has the system's error as its source; text that cannot be understood gives
//! `InvalidData`.
//!
//! Cost: an open, a read and a close per file; nothing is remembered.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::{error, fmt, fs, io};

/// Reads a list of ids, in the order of the file, which the kernel keeps ascending.
pub(crate) fn read_id_list(path: &Path) -> io::Result<Vec<usize>> {
    let text = read(path)?;
    parse_id_list(&text).ok_or_else(|| not_understood(path, &text))
}

/// Reads one number.
pub(crate) fn read_number(path: &Path) -> io::Result<i64> {
    let text = read(path)?;
    text.trim().parse().map_err(|_| not_understood(path, &text))
}

/// Turns "there is no such file" into `None`.
pub(crate) fn if_present<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Parses the kernel's list format: numbers and inclusive ranges, divided by
/// commas. The empty list is an empty line.
fn parse_id_list(text: &str) -> Option<Vec<usize>> {
    let text = text.trim();
    let mut ids = Vec::new();
    if text.is_empty() {
        return Some(ids);
    }
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.parse().ok()?;
        let last: usize = last.parse().ok()?;
        if last < first || last >= IDS_MAX {
            return None;
        }
        ids.extend(first..=last);
    }
    Some(ids)
}

fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path).map_err(|source| {
        let kind = source.kind();
        let path = path.to_owned();
        io::Error::new(kind, UnreadableFile { path, source })
    })
}

fn not_understood(path: &Path, text: &str) -> io::Error {
    let message = format!("cannot understand {}: {text:?}", path.display());
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[derive(Debug)]
struct UnreadableFile {
    path: PathBuf,
    source: io::Error,
}

impl fmt::Display for UnreadableFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read {}: {}", self.path.display(), self.source)
    }
}

impl error::Error for UnreadableFile {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Far above what any kernel counts to, and low enough that a broken list cannot
/// eat the memory.
const IDS_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    #[test]
    fn lists_of_the_kernel_are_understood() {
        for (text, ids) in [
            ("0\n", &[0usize] as &[usize]),
            ("0-3\n", &[0, 1, 2, 3]),
            ("0-3,8\n", &[0, 1, 2, 3, 8]),
            ("1,3,5-6,1023", &[1, 3, 5, 6, 1023]),
            ("7-7", &[7]),
            ("\n", &[]),
            ("", &[]),
        ] {
            assert_eq!(parse_id_list(text).as_deref(), Some(ids), "{text:?}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "a",
            "1,",
            ",1",
            "3-1",
            "1-",
            "-1",
            "1--2",
            "1 2",
            "0x3",
            "0-18446744073709551615",
            "99999999999999999999",
        ] {
            assert_eq!(parse_id_list(text), None, "{text:?}");
        }
    }

    #[test]
    fn files_are_read_and_bad_ones_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("entry");

        fs::write(&path, "-1\n").unwrap();
        assert_eq!(read_number(&path).unwrap(), -1);
        let error = read_id_list(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().contains("entry"), "{error}");

        fs::write(&path, "2,4\n").unwrap();
        assert_eq!(read_id_list(&path).unwrap(), [2, 4]);
        let error = read_number(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_missing_file_is_told_apart_and_keeps_its_errno() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        assert_eq!(if_present(read_number(&missing)).unwrap(), None);

        let error = read_number(&missing).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("missing"), "{error}");
        let source = error.source().and_then(|e| e.downcast_ref::<io::Error>());
        assert_eq!(source.and_then(io::Error::raw_os_error), Some(libc::ENOENT));

        // A folder is there, but it is not a file with a number in it.
        assert!(if_present(read_number(folder.path())).is_err());
    }
}
