//! The procedural macros of glommio. Use them by its feature `macros`; they are documented there.

#![forbid(unsafe_code)]

mod entry;
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

/// See `glommio::select`.
#[proc_macro]
pub fn select(input: TokenStream) -> TokenStream {
    parse_macro_input!(input as select::Select).expand().into()
}
