//! `select!`: the first of several futures that is done.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, Expr, Ident, Pat, Path, Result, Token, parse_quote};

mod keyword {
    syn::custom_keyword!(biased);
}

pub struct Select {
    /// How the crate is called where the macro is used.
    root: Path,
    is_biased: bool,
    branches: Vec<Branch>,
}

struct Branch {
    pattern: Pat,
    future: Expr,
    body: Expr,
}

impl Parse for Select {
    fn parse(input: ParseStream) -> Result<Self> {
        let (mut root, mut biased) = (None, None);
        loop {
            if input.peek(Token![crate]) && input.peek2(Token![=]) {
                let name: Token![crate] = input.parse()?;
                input.parse::<Token![=]>()?;
                let path = input.call(Path::parse_mod_style)?;
                if root.replace(path).is_some() {
                    return Err(Error::new(name.span, "`crate` is there twice"));
                }
            } else if input.peek(keyword::biased) && input.peek2(Token![;]) {
                let name: keyword::biased = input.parse()?;
                if biased.replace(()).is_some() {
                    return Err(Error::new(name.span, "`biased` is there twice"));
                }
            } else {
                break;
            }
            input.parse::<Token![;]>()?;
        }
        if input.is_empty() {
            return Err(input.error("`select!` needs a branch: `pattern = future => body`"));
        }
        let mut branches = Vec::new();
        while !input.is_empty() {
            branches.push(input.parse()?);
        }
        Ok(Select {
            root: root.unwrap_or_else(|| parse_quote!(::glommio)),
            is_biased: biased.is_some(),
            branches,
        })
    }
}

impl Parse for Branch {
    fn parse(input: ParseStream) -> Result<Self> {
        if input.peek(Token![else]) {
            return Err(input.error(
                "`select!` has no `else` branch: each pattern matches, so there is always one that is taken",
            ));
        }
        let pattern = Pat::parse_multi_with_leading_vert(input)?;
        refuse_guard(input)?;
        if input.peek(Token![=>]) {
            return Err(input.error("a pattern and `=` come first: `pattern = future => body`"));
        }
        input.parse::<Token![=]>()?;
        let future = input.parse()?;
        refuse_guard(input)?;
        if input.peek(Token![,]) {
            return Err(input.error(
                "`select!` has no guards, and each branch has a body: `pattern = future => body`",
            ));
        }
        input.parse::<Token![=>]>()?;
        let body = Expr::parse_with_earlier_boundary_rule(input)?;
        let comma: Option<Token![,]> = input.parse()?;
        if comma.is_none() && !input.is_empty() && !ends_by_itself(&body) {
            return Err(input.error("expected `,` after the body of the branch before"));
        }
        Ok(Branch {
            pattern,
            future,
            body,
        })
    }
}

fn refuse_guard(input: ParseStream) -> Result<()> {
    if input.peek(Token![if]) {
        return Err(input.error(
            "`select!` has no guards: leave the future pending, for example with `std::future::pending`",
        ));
    }
    Ok(())
}

/// Whether no comma is needed behind it, as in a `match`.
fn ends_by_itself(body: &Expr) -> bool {
    matches!(
        body,
        Expr::Block(_)
            | Expr::Const(_)
            | Expr::ForLoop(_)
            | Expr::If(_)
            | Expr::Loop(_)
            | Expr::Match(_)
            | Expr::TryBlock(_)
            | Expr::Unsafe(_)
            | Expr::While(_)
    )
}

impl Select {
    pub fn expand(&self) -> TokenStream {
        let root = &self.root;
        let private = quote!(#root::__private);
        let count = self.branches.len();
        // Names of our own: the caller's code does not see them.
        let own = |name: &str| Ident::new(name, Span::mixed_site());
        let (selected, output, cx, first, turn) = (
            own("selected"),
            own("output"),
            own("cx"),
            own("first"),
            own("turn"),
        );
        let names: Vec<_> = (0..count).map(|n| own(&format!("future_{n}"))).collect();
        let variants: Vec<_> = (0..count).map(|n| format_ident!("_{n}")).collect();
        let futures = self.branches.iter().map(|branch| {
            let future = &branch.future;
            quote_spanned!(future.span()=> #private::IntoFuture::into_future(#future))
        });
        let polls: Vec<_> = names
            .iter()
            .zip(&variants)
            .map(|(name, variant)| {
                quote! {
                    if let #private::Poll::Ready(#output) = #private::Future::poll(#name.as_mut(), #cx) {
                        return #private::Poll::Ready(__GlommioSelected::#variant(#output));
                    }
                }
            })
            .collect();
        let poll_all = if self.is_biased || count == 1 {
            quote!(#(#polls)*)
        } else {
            let numbers = 0..count;
            quote! {
                for #turn in 0..#count {
                    match (#first + #turn) % #count {
                        #(#numbers => #polls)*
                        _ => {}
                    }
                }
            }
        };
        let begin = if self.is_biased || count == 1 {
            quote!()
        } else {
            quote!(let #first = #private::first_branch(#count);)
        };
        let arms = self
            .branches
            .iter()
            .zip(&variants)
            .map(|(branch, variant)| {
                let Branch { pattern, body, .. } = branch;
                // A pattern that does not match all is told of where it stands.
                let output = Ident::new("output", Span::mixed_site().located_at(pattern.span()));
                quote! {
                    __GlommioSelected::#variant(#output) => match #output {
                        #pattern => #body
                    },
                }
            });
        quote! {{
            #[allow(non_camel_case_types)]
            enum __GlommioSelected<#(#variants),*> {
                #(#variants(#variants)),*
            }
            // The futures, and what they borrow of temporaries, are gone at the end of this statement.
            let #selected = match (#(#futures,)*) {
                (#(#names,)*) => {
                    #(let mut #names = #private::pin!(#names);)*
                    #begin
                    #private::poll_fn(move |#cx| {
                        #poll_all
                        #private::Poll::Pending
                    })
                    .await
                }
            };
            match #selected {
                #(#arms)*
            }
        }}
    }
}
