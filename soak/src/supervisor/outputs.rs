//! The files that were asked for, opened before the run: a file that cannot be written should not
//! be reported after five minutes only.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use crate::options::Options;
use crate::record::Record;
use crate::report;

/// Where the records go.
#[derive(Debug)]
pub(crate) struct Outputs {
    json: Option<Output>,
    report: Option<Output>,
    pictures: Option<PathBuf>,
}

impl Outputs {
    pub(crate) fn open(options: &Options) -> Result<Self, String> {
        let open = |name, path: &Option<PathBuf>| {
            path.as_deref()
                .map(|path| Output::open(path).map_err(|error| told(name, path, &error)))
                .transpose()
        };
        Ok(Outputs {
            json: open("--json", &options.json)?,
            report: open("--report", &options.report)?,
            pictures: options.pictures.clone(),
        })
    }

    /// Writes `records`: to JSON as an array if they are to be compared, else the only one by
    /// itself.
    pub(crate) fn write(mut self, records: &[Record], is_comparison: bool) -> Result<(), String> {
        if let Some(json) = &mut self.json {
            json.write(|file| {
                let mut writer = BufWriter::new(file);
                match records {
                    [record] if !is_comparison => serde_json::to_writer(&mut writer, record)?,
                    records => serde_json::to_writer(&mut writer, records)?,
                }
                writer.write_all(b"\n")?;
                writer.flush()
            })
            .map_err(|error| told("--json", &json.path, &error))?;
        }
        if let Some(page) = &mut self.report {
            page.is_ours = false;
            report::write(&page.path, records)
                .map_err(|error| told("--report", &page.path, &error))?;
        }
        if let Some(directory) = &self.pictures {
            report::write_pictures(directory, records)
                .map_err(|error| told("--pictures", directory, &error))?;
        }
        Ok(())
    }
}

/// A file that can be written. If it was not there before and nothing is written, it goes again.
#[derive(Debug)]
struct Output {
    path: PathBuf,
    file: File,
    is_ours: bool,
}

impl Output {
    /// What is in the file stays until there is something to write.
    fn open(path: &Path) -> io::Result<Self> {
        let is_ours = !path.exists();
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        Ok(Output {
            path: path.to_owned(),
            file,
            is_ours,
        })
    }

    fn write(&mut self, content: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
            self.file.rewind()?;
        }
        self.is_ours = false;
        content(&mut self.file)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.is_ours {
            // It is empty and an empty file was not asked for; it may have been removed already.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn told(name: &str, path: &Path, error: &io::Error) -> String {
    format!("{name} {}: {error}", path.display())
}
