//! Scenarios of names.

use super::*;

#[test]
fn names_are_made_and_removed() {
    let mut steps = vec![mkdir("d"), mkdir("d/sub/"), mkdir("e")];
    steps.extend(file("f"));
    steps.extend([
        (Step::MakeDirectory("d".into()), fails(EEXIST)),
        (Step::MakeDirectory("f".into()), fails(EEXIST)),
        (Step::MakeDirectory("f/".into()), fails(EEXIST)),
        (Step::MakeDirectory("f/x".into()), fails(ENOTDIR)),
        (Step::MakeDirectory("none/x".into()), fails(ENOENT)),
        (Step::MakeDirectory(".".into()), fails(EEXIST)),
        (Step::MakeDirectory("d/..".into()), fails(EEXIST)),
        (rmdir("d"), fails(ENOTEMPTY)),
        (rmdir("d/."), fails(EINVAL)),
        (rmdir("d/.."), fails(ENOTEMPTY)),
        (rmdir("f"), fails(ENOTDIR)),
        (rmdir("f/"), fails(ENOTDIR)),
        (rmdir("none"), fails(ENOENT)),
        (unlink("d"), fails(EISDIR)),
        (unlink("d/"), fails(EISDIR)),
        (unlink("d/."), fails(EISDIR)),
        (unlink("f/"), fails(ENOTDIR)),
        (unlink("none"), fails(ENOENT)),
        (unlink("none/"), fails(ENOENT)),
        (stat("d"), None),
        (open(0, "d/sub", O_RDONLY), DONE),
        (Step::List(0), Some(Ok(Outcome::Names(vec![])))),
        (rmdir("d/sub"), DONE),
        (Step::Stat(0), None),
        (Step::Open(1, Some(0), "x".into(), CREATE), fails(ENOENT)),
        (Step::Open(1, Some(0), ".".into(), READ), DONE),
        (Step::Open(1, Some(0), "..".into(), READ), DONE),
        (stat("d"), None),
        (Step::Link("f".into(), "g".into()), DONE),
        (Step::Link("f".into(), "g".into()), fails(EEXIST)),
        (Step::Link("d".into(), "x".into()), fails(EPERM)),
        (Step::Link("d".into(), "g".into()), fails(EEXIST)),
        (Step::Link("none".into(), "x".into()), fails(ENOENT)),
        (Step::Link("f".into(), "x/".into()), fails(ENOENT)),
        (Step::Link("f".into(), "none/x".into()), fails(ENOENT)),
        (open(2, "f", O_RDWR), DONE),
        (Step::Stat(2), None),
        (unlink("f"), DONE),
        (Step::Stat(2), None),
        (unlink("g"), DONE),
        (Step::Stat(2), None),
        (Step::Read(2, Some(0), 9), bytes(&[7; 5])),
        (Step::Write(2, Some(5), 1, 1), count(1)),
        (Step::LinkOpen(2, "back".into()), fails(ENOENT)),
        (Step::Close(2), DONE),
        (stat("f"), fails(ENOENT)),
        (open(3, ".", READ), DONE),
        (Step::List(3), None),
    ]);
    check(steps);
}

#[test]
fn renames_replace() {
    let mut steps = vec![
        mkdir("d"),
        mkdir("d/sub"),
        mkdir("empty"),
        mkdir("full"),
        link("f", "l"),
    ];
    for path in ["f", "g", "full/x", "d/sub/y"] {
        steps.extend(file(path));
    }
    steps.extend([
        (rename("none", "x"), fails(ENOENT)),
        (rename("f", "none/x"), fails(ENOENT)),
        (rename("f", "g/x"), fails(ENOTDIR)),
        (rename("f", "d"), fails(EISDIR)),
        (rename("d", "f"), fails(ENOTDIR)),
        (rename("empty", "full"), fails(ENOTEMPTY)),
        (rename("d", "d/sub/x"), fails(EINVAL)),
        (rename("d", "d/x"), fails(EINVAL)),
        (rename("d/sub", "d"), fails(ENOTEMPTY)),
        (rename("d/sub/y", "d"), fails(ENOTEMPTY)),
        (rename("d", "d"), DONE),
        (rename("f", "f"), DONE),
        (rename("f", "."), fails(EBUSY)),
        (rename("d/.", "x"), fails(EBUSY)),
        (rename("d/..", "x"), fails(EBUSY)),
        (rename("f/", "x"), fails(ENOTDIR)),
        (rename("f", "x/"), fails(ENOTDIR)),
        (rename("d/", "x/"), DONE),
        (rename("x", "d"), DONE),
        (rename("full", "empty"), DONE),
        (stat("empty/x"), None),
        (rename("l", "l2"), DONE),
        (Step::ReadLink("l2".into()), bytes(b"f")),
        (Step::Link("f".into(), "f2".into()), DONE),
        (rename("f", "f2"), DONE),
        (stat("f2"), None),
        (rename("f", "g"), DONE),
        (stat("f2"), None),
        (stat("d"), None),
        (rename("d/sub", "empty/sub"), DONE),
        (stat("d"), None),
        (stat("empty"), None),
        (stat("empty/sub/../x"), None),
        (open(0, ".", READ), DONE),
        (Step::List(0), None),
    ]);
    check(steps);
}

#[test]
fn a_file_without_a_name_may_get_one() {
    let mut steps = vec![mkdir("d")];
    steps.extend(file("f"));
    steps.extend([
        (open(0, "d", O_TMPFILE | O_RDONLY), fails(EINVAL)),
        (open(0, "f", O_TMPFILE | O_RDWR), fails(ENOTDIR)),
        (open(0, "none", O_TMPFILE | O_RDWR), fails(ENOENT)),
        (open(0, "d", O_TMPFILE | O_RDWR | O_CREAT), fails(EINVAL)),
        (open(0, "d", O_TMPFILE | O_RDWR), DONE),
        (open(1, "d", O_TMPFILE | O_RDWR | O_EXCL), DONE),
        (Step::Write(0, None, 10, 3), count(10)),
        (Step::Stat(0), None),
        (open(2, "d", READ), DONE),
        (Step::List(2), Some(Ok(Outcome::Names(vec![])))),
        (Step::LinkOpen(1, "x".into()), fails(ENOENT)),
        (Step::LinkOpen(0, "f".into()), fails(EEXIST)),
        (Step::LinkOpen(0, "d/x".into()), DONE),
        (Step::LinkOpen(0, "d/y".into()), DONE),
        (Step::LinkOpen(2, "d/z".into()), fails(EPERM)),
        (Step::Stat(0), None),
        (Step::List(2), None),
        (unlink("d/x"), DONE),
        (unlink("d/y"), DONE),
        (Step::LinkOpen(0, "d/x".into()), fails(ENOENT)),
    ]);
    check(steps);
}
