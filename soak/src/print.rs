//! Standard output.

use std::fmt;
use std::io::{self, ErrorKind, Write, stdout};

/// Prints a line like `println!`, but its reader may leave (`soak | head`): the run goes on, since
/// its verdict is in the exit status and in the files as well.
macro_rules! print_line {
    ($($words:tt)*) => {
        $crate::print::line(format_args!($($words)*))
    };
}
pub(crate) use print_line;

/// Says it at once, to the process that has started this one.
pub(crate) fn tell<T: fmt::Display>(what: T) -> io::Result<()> {
    let mut parent = stdout().lock();
    writeln!(parent, "{what}")?;
    parent.flush()
}

pub(crate) fn line(words: fmt::Arguments<'_>) {
    if let Err(error) = writeln!(stdout(), "{words}")
        && error.kind() != ErrorKind::BrokenPipe
    {
        eprintln!("soak: standard output: {error}");
    }
}
