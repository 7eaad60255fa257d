//! The procedural macros of glommio. Use them by its feature `macros`; they are documented there.

#![forbid(unsafe_code)]

mod entry;
mod run_test;
mod select;

use proc_macro::TokenStream;
use syn::parse_macro_input;

/// See `glommio::main`.
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand(entry::Kind::Main, arguments.into(), item.into()).into()
}

/// See `glommio::test`.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand(entry::Kind::Test, arguments.into(), item.into()).into()
}

/// A test of glommio. `#[run_test(f(1))] fn test(a: A) { .. }` is the test `f(1, |a: A| { .. })`, and so is an `async fn` with an
/// async closure. Without arguments an `async fn` is the test `run(async { .. })`, and an `fn` `with_watchdog(|| { .. })`.
/// An `async fn` that uses `?` ends with `Ok(())`, which need not be written.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn run_test(runner: TokenStream, item: TokenStream) -> TokenStream {
    let test = run_test::expand(runner.into(), item.into());
    test.unwrap_or_else(|error| error.to_compile_error()).into()
}

/// See `glommio::select`.
#[proc_macro]
pub fn select(input: TokenStream) -> TokenStream {
    parse_macro_input!(input as select::Select).expand().into()
}
