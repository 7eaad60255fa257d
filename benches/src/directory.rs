//! Where a bench leaves its results.

use std::env;
use std::path::PathBuf;

/// The target directory: this bench lies in `target/<profile>/deps/<bench>`.
///
/// # Panics
/// If the bench was started from elsewhere.
pub fn target_directory() -> PathBuf {
    let executable = env::current_exe().expect("a running bench has a path");
    let target = executable.ancestors().nth(3);
    target
        .expect("cargo builds benches three levels down")
        .to_owned()
}
