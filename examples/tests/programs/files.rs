//! The example `copy`.

use std::fs;

use crate::servers::{noise, run};

#[test]
fn a_copy_is_the_same_byte_by_byte() {
    // On the disk that has the target directory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("there is room");
    let [source, copy] = ["source", "copy"].map(|name| folder.path().join(name));
    let arguments = [&source, &copy].map(|path| path.to_str().expect("text"));
    // What was there before is gone, also if it was longer.
    fs::write(&copy, noise(12 << 20)).expect("there is room");
    // Lengths around those of blocks, alignments and nothing at all.
    for length in [0, 1, 4096, 100_000, (1 << 20) + 1, 9 << 20] {
        fs::write(&source, noise(length)).expect("there is room");
        let (is_success, told, errors) = run("copy", &[&arguments[..], &["--sync"]].concat());
        assert!(is_success, "{errors}");
        assert!(told.starts_with(&format!("{length} bytes in ")), "{told}");
        let copied = fs::read(&copy).expect("it was written");
        assert!(copied == noise(length), "{length}: {}", copied.len());
    }
    fs::remove_file(&copy).expect("it is there");
    fs::hard_link(&source, &copy).expect("the disk has links");
    let (is_success, _, errors) = run("copy", &arguments);
    assert!(!is_success && errors.contains("the same file"), "{errors}");
    assert!(fs::read(&source).expect("it is there") == noise(9 << 20));
}
