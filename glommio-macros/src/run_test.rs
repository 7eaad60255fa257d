//! `#[run_test]`: a test whose body another function runs, for the tests of glommio.

use std::mem::take;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Block, Expr, ItemFn, Result, Stmt, parse_quote};

pub fn expand(runner: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut function: ItemFn = syn::parse2(item)?;
    let (asyncness, parameters) = (
        function.sig.asyncness.take(),
        take(&mut function.sig.inputs),
    );
    if asyncness.is_some() {
        succeed_at_the_end(&mut function.block);
    }
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

/// A body that uses `?` and has no value at its end has `Ok(())`.
fn succeed_at_the_end(body: &mut Block) {
    let has_value = match body.stmts.last() {
        Some(Stmt::Expr(Expr::ForLoop(_) | Expr::While(_), None)) => false,
        last => matches!(last, Some(Stmt::Expr(_, None))),
    };
    if !has_value && is_fallible(body) {
        body.stmts.push(Stmt::Expr(parse_quote!(Ok(())), None));
    }
}

/// Whether there is a `?` that is in no inner block but a loop's: others may be those of functions.
fn is_fallible(body: &Block) -> bool {
    body.stmts.iter().any(|statement| match statement {
        Stmt::Expr(Expr::ForLoop(each), _) => {
            has_question_mark(each.expr.to_token_stream()) || is_fallible(&each.body)
        }
        other => has_question_mark(other.to_token_stream()),
    })
}

fn has_question_mark(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(it) if it.delimiter() == Delimiter::Brace => false,
        TokenTree::Group(it) => has_question_mark(it.stream()),
        it => it.to_string() == "?",
    })
}
