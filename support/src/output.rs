//! Where results go: folders, blocks of pages, files that were asked for, and the exit status.

use std::env;
use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The target directory, of a bench that Cargo has built: it lies in
/// `target/<profile>/deps/<bench>`.
///
/// # Panics
/// If the program lies elsewhere.
pub fn target_directory() -> PathBuf {
    let executable = env::current_exe().expect("a running program has a path");
    let target = executable.ancestors().nth(3);
    target
        .expect("cargo builds benches three levels down")
        .to_owned()
}

/// The folder `docs` of the repository that this was built from.
///
/// # Errors
/// If it is not there any more.
pub fn docs_directory() -> io::Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .canonicalize()
}

/// Puts `text` between the marks of the block `name`, `<!-- name:begin -->` and `<!-- name:end -->`.
///
/// # Errors
/// If the page has no marks, or cannot be read or written.
pub fn write_block(page: &Path, name: &str, text: &str) -> io::Result<()> {
    let marks = ["begin", "end"].map(|place| format!("<!-- {name}:{place} -->\n"));
    let old = fs::read_to_string(page)?;
    let parts = old.split_once(&marks[0]).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&marks[1])?;
        Some((before, after))
    });
    let (before, after) = parts
        .ok_or_else(|| io::Error::other(format!("{} has no marks for {name}", page.display())))?;
    fs::write(
        page,
        [before, &marks[0], "\n", text, "\n", &marks[1], after].concat(),
    )
}

/// A file that was asked for, opened before the work begins: that it cannot be written should not
/// be found out when there are results to be lost.
///
/// What is in the file stays until there is something to write. If it was not there before and
/// nothing is written, it is removed again.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    file: File,
    is_new: bool,
}

impl OutputFile {
    /// Opens the file at `path`, or makes one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let is_new = !path.exists();
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        Ok(OutputFile {
            path: path.to_owned(),
            file,
            is_new,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Empties the file, if it is one and no pipe or device, and lets `content` write to it.
    ///
    /// # Errors
    /// Those of `content`, and if the file cannot be emptied.
    pub fn write(&mut self, content: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
            self.file.rewind()?;
        }
        self.is_new = false;
        content(&mut self.file)
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if self.is_new {
            // It is empty and an empty file was not asked for; it may have been removed already.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The exit status for what came out; says what went wrong.
pub fn exit_code<E: Display>(outcome: Result<(), E>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_block_is_replaced_and_the_rest_of_the_page_stays() {
        let directory = tempfile::tempdir().expect("a folder for this test");
        let page = directory.path().join("page.md");
        let with = |figures: &str| {
            format!(
                "# Page\n\n<!-- figures:begin -->\n\n{figures}\n<!-- figures:end -->\n\n\
                 <!-- ways:begin -->\nother\n<!-- ways:end -->\nend\n"
            )
        };
        fs::write(&page, with("old")).expect("the folder can be written");
        write_block(&page, "figures", "new\n").expect("it has the marks");
        let text = fs::read_to_string(&page).expect("it is there");
        assert_eq!(text, with("new\n"));

        let error = write_block(&page, "none", "text").expect_err("there is no such block");
        assert!(error.to_string().contains("no marks for none"), "{error}");
        assert_eq!(fs::read_to_string(&page).expect("it is there"), text);
    }

    #[test]
    fn a_file_keeps_what_it_has_until_something_is_written() {
        let directory = tempfile::tempdir().expect("a folder for this test");
        let path = directory.path().join("run.json");
        fs::write(&path, "a long text of an earlier run").expect("the folder can be written");
        let mut output = OutputFile::open(&path).expect("it can be written");
        assert!(fs::read_to_string(&path).is_ok_and(|text| text.starts_with("a long text")));
        let written = output.write(|file| file.write_all(b"short"));
        written.expect("it can be written");
        drop(output);
        assert!(fs::read_to_string(&path).is_ok_and(|text| text == "short"));
    }

    #[test]
    fn a_new_file_without_content_is_removed() {
        let directory = tempfile::tempdir().expect("a folder for this test");
        let path = directory.path().join("run.json");
        let output = OutputFile::open(&path).expect("it can be made");
        assert!(output.path().exists());
        drop(output);
        assert!(!path.exists());
        assert!(OutputFile::open(&path.join("below")).is_err());
    }
}
