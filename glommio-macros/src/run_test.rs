//! `#[run_test]`: a test whose body another function runs, for the tests of glommio.

use std::mem::take;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Expr, ItemFn, Result, parse_quote};

pub fn expand(runner: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut function: ItemFn = syn::parse2(item)?;
    let (asyncness, parameters) = (
        function.sig.asyncness.take(),
        take(&mut function.sig.inputs),
    );
    let body = &function.block;
    let closure: Expr = parse_quote!(#asyncness |#parameters| #body);
    let call = match (runner.is_empty(), asyncness) {
        (true, Some(_)) => quote!(run(async #body)),
        (true, None) => quote!(with_watchdog(#closure)),
        _ => match syn::parse2(runner)? {
            Expr::Call(mut call) => {
                call.args.push(closure);
                call.into_token_stream()
            }
            name => quote!(#name(#closure)),
        },
    };
    let (attributes, signature) = (&function.attrs, &function.sig);
    Ok(quote! {
        #(#attributes)*
        #[::core::prelude::v1::test]
        #signature { #call }
    })
}
