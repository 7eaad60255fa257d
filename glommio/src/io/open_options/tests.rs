use libc::{
    O_APPEND, O_CLOEXEC, O_CREAT, O_EXCL, O_NOATIME, O_RDONLY, O_RDWR, O_TMPFILE, O_TRUNC, O_WRONLY,
};

use super::*;

fn flags(set: impl FnOnce(&mut OpenOptions) -> &mut OpenOptions) -> Option<libc::c_int> {
    let mut options = OpenOptions::new();
    let flags = set(&mut options).flags();
    if let Err(error) = &flags {
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
    flags.ok().map(|flags| {
        assert_ne!(flags & O_CLOEXEC, 0);
        flags & !O_CLOEXEC
    })
}

#[test]
fn access_is_for_reading_writing_and_appending() {
    for append in [false, true] {
        for write in [false, true] {
            for read in [false, true] {
                let expected = match (read, write, append) {
                    (false, false, false) => None,
                    (true, false, false) => Some(O_RDONLY),
                    (false, true, false) => Some(O_WRONLY),
                    (true, true, false) => Some(O_RDWR),
                    (false, _, true) => Some(O_WRONLY | O_APPEND),
                    (true, _, true) => Some(O_RDWR | O_APPEND),
                };
                let found = flags(|it| it.read(read).write(write).append(append));
                assert_eq!(found, expected, "{read} {write} {append}");
            }
        }
    }
}

#[test]
fn what_changes_a_file_needs_write_access() {
    assert_eq!(flags(|it| it.read(true).truncate(true)), None);
    assert_eq!(flags(|it| it.read(true).create(true)), None);
    assert_eq!(flags(|it| it.read(true).create_new(true)), None);
    assert_eq!(flags(|it| it.read(true).tmpfile(true)), None);
    assert_eq!(
        flags(|it| it.write(true).create(true).truncate(true)),
        Some(O_WRONLY | O_CREAT | O_TRUNC)
    );
}

#[test]
fn appending_and_truncating_exclude_each_other_but_on_new_files() {
    assert_eq!(flags(|it| it.append(true).truncate(true)), None);
    assert_eq!(
        flags(|it| it.append(true).truncate(true).create_new(true)),
        Some(O_WRONLY | O_APPEND | O_CREAT | O_EXCL)
    );
    assert_eq!(
        flags(|it| it.append(true).truncate(true).tmpfile(true)),
        Some(O_WRONLY | O_APPEND | O_TMPFILE | O_EXCL)
    );
}

#[test]
fn a_file_without_a_name_goes_before_a_new_one_and_that_before_any() {
    let all = |it: &mut OpenOptions| {
        it.read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .create_new(true)
            .tmpfile(true)
            .clone()
    };
    let mut options = all(&mut OpenOptions::new());
    let flags = |options: &OpenOptions| options.flags().unwrap() & !O_CLOEXEC;
    assert_eq!(flags(&options), O_RDWR | O_TMPFILE | O_EXCL);
    options.tmpfile_linkable(true);
    assert_eq!(flags(&options), O_RDWR | O_TMPFILE);
    options.tmpfile(false);
    assert_eq!(flags(&options), O_RDWR | O_CREAT | O_EXCL);
    options.create_new(false);
    assert_eq!(flags(&options), O_RDWR | O_CREAT | O_TRUNC);
    assert_eq!(options.op(), "Creating");
    options.create(false);
    assert_eq!(flags(&options), O_RDWR | O_TRUNC);
    assert_eq!(options.op(), "Opening");
}

#[test]
fn custom_flags_do_not_change_the_access() {
    assert_eq!(
        flags(|it| it.read(true).custom_flags(O_NOATIME | O_RDWR)),
        Some(O_NOATIME)
    );
}
