//! The files that were asked for, opened before the run: a file that cannot be written should not
//! be reported after five minutes only.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use support::output::OutputFile;

use crate::options::Options;
use crate::record::Record;
use crate::report;

/// Where the records go.
#[derive(Debug)]
pub(crate) struct Outputs {
    json: Option<OutputFile>,
    report: Option<OutputFile>,
    pictures: Option<PathBuf>,
}

impl Outputs {
    pub(crate) fn open(options: &Options) -> Result<Self, String> {
        let open = |name, path: &Option<PathBuf>| {
            path.as_deref()
                .map(|path| OutputFile::open(path).map_err(|error| told(name, path, &error)))
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
            .map_err(|error| told("--json", json.path(), &error))?;
        }
        if let Some(page) = &mut self.report {
            let text = report::page(records);
            page.write(|file| file.write_all(text.as_bytes()))
                .map_err(|error| told("--report", page.path(), &error))?;
        }
        if let Some(directory) = &self.pictures {
            report::write_pictures(directory, records)
                .map_err(|error| told("--pictures", directory, &error))?;
        }
        Ok(())
    }
}

fn told(name: &str, path: &Path, error: &io::Error) -> String {
    format!("{name} {}: {error}", path.display())
}
