//! The macros of the feature `macros`: what they expand to does what they promise, and what they
//! refuse they explain.

#[macro_use(run_test)]
extern crate glommio_macros;
#[path = "../common/mod.rs"]
mod common;

mod entry;
mod join;
mod select;

/// The messages of the compiler, beside each program that is wrong. After a change:
/// `TRYBUILD=overwrite`.
#[test]
#[ignore = "the library is built anew for it: `.ci/release` does that"]
fn what_is_wrong_is_explained() {
    trybuild::TestCases::new().compile_fail("tests/macros/compile_fail/*.rs");
}
