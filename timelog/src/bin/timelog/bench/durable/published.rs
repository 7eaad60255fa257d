//! The same source on the published glommio 0.9.0, by a program of a workspace of its own: 0.9.0
//! needs a C compiler, which no other build does.

use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, io};

use super::row::Row;

/// Has cargo compile and run it, in a checkout of this repository.
pub fn measure(folder: &Path) -> io::Result<Vec<Row>> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("published/Cargo.toml");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["run", "--quiet", "--release", "--manifest-path"])
        .arg(&manifest)
        .args(["--", "--raw"])
        .arg(folder)
        .stderr(Stdio::inherit());
    let failed = |what: String| io::Error::other(format!("{}: {what}", manifest.display()));
    let output = cargo.output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(format!("cargo ended with {}", output.status)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let rows: Option<Vec<_>> = text.lines().map(row).collect();
    rows.filter(|rows| !rows.is_empty())
        .ok_or_else(|| failed(format!("no figures: {text}")))
}

/// Of a line: what it is, the unit, and a figure for each round.
fn row(line: &str) -> Option<Row> {
    let mut parts = line.split('\t');
    let what = parts.next()?;
    let unit = ["µs", "MB/s", ""];
    let unit = parts
        .next()
        .and_then(|it| unit.into_iter().find(|unit| *unit == it))?;
    let figures: Result<Vec<f64>, _> = parts.map(str::parse).collect();
    let figures = figures.ok().filter(|figures| !figures.is_empty())?;
    Some(Row::new(what, unit, figures))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_figures() {
        let read = row("append\tµs\t3\t1.5\t2").unwrap();
        assert_eq!((read.what.as_str(), read.unit), ("append", "µs"));
        assert_eq!((read.figure.min, read.figure.median), (1.5, 2.0));
        for line in [
            "",
            "append",
            "append\tµs",
            "append\tkg\t1",
            "append\tµs\tfast",
        ] {
            assert!(row(line).is_none(), "{line}");
        }
    }
}
