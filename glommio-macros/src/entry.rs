//! `#[main]` and `#[test]`: functions that run an `async` body in an executor.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{
    AttrStyle, Error, Ident, ItemFn, Path, Result, Safety, Token, parenthesized, parse_quote,
};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Main,
    Test,
}

pub fn expand(kind: Kind, arguments: TokenStream, item: TokenStream) -> TokenStream {
    let function: ItemFn = match syn::parse2(item.clone()) {
        Ok(function) => function,
        // What is no function, or not a whole one: the compiler's own errors belong to it, too.
        Err(mut error) => {
            let why = "this attribute belongs to an `async fn`";
            error.combine(Error::new(Span::call_site(), why));
            let error = error.to_compile_error();
            return quote!(#error #item);
        }
    };
    let arguments = Arguments::parse.parse2(arguments);
    let checked = check(kind, &function);
    match (arguments, checked) {
        (Ok(arguments), Ok(())) => run(kind, arguments, function),
        (Err(mut error), Err(other)) => {
            error.combine(other);
            refuse(&error, &function)
        }
        (Err(error), _) | (_, Err(error)) => refuse(&error, &function),
    }
}

fn run(kind: Kind, arguments: Arguments, function: ItemFn) -> TokenStream {
    let Arguments {
        root,
        placement,
        start_paused,
        is_simulated,
    } = arguments;
    let is_for_tests = is_simulated || start_paused.is_some();
    let why = match kind {
        _ if !is_for_tests => None,
        Kind::Main => Some("`start_paused` and `simulated` are for tests"),
        Kind::Test if cfg!(not(feature = "simulation")) => {
            Some("`start_paused` and `simulated` need the feature `simulation` of glommio")
        }
        Kind::Test if is_simulated && (placement.is_some() || start_paused.is_some()) => Some(
            "`simulated` goes with no other argument than `crate`: the simulation places the executor, and moves its clock",
        ),
        Kind::Test => None,
    };
    if let Some(why) = why {
        return refuse(&Error::new_spanned(&function.sig.ident, why), &function);
    }
    let root = root.unwrap_or_else(|| parse_quote!(::glommio));
    let placement = placement.unwrap_or_else(|| quote!(Unbound));
    let call = match start_paused {
        _ if is_simulated => quote!(#root::__private::run_simulated(__glommio_body)),
        Some(true) => {
            quote!(#root::__private::run_paused(#root::Placement::#placement, __glommio_body()))
        }
        _ => quote!(#root::__private::run(#root::Placement::#placement, __glommio_body())),
    };
    let test = (kind == Kind::Test).then(|| quote!(#[::core::prelude::v1::test]));
    let (inner, outer): (Vec<_>, Vec<_>) = (function.attrs.iter())
        .partition(|attribute| matches!(attribute.style, AttrStyle::Inner(_)));
    let (visibility, name) = (&function.vis, &function.sig.ident);
    let (output, statements) = (&function.sig.output, &function.block.stmts);
    quote! {
        #(#outer)*
        #test
        #visibility fn #name() #output {
            // A function, so that the return type is known inside.
            async fn __glommio_body() #output {
                #(#inner)*
                #(#statements)*
            }
            #call
        }
    }
}

/// A program whose `main` has an error should not be told that it has no `main`.
fn refuse(error: &Error, function: &ItemFn) -> TokenStream {
    let error = error.to_compile_error();
    let name = &function.sig.ident;
    let main = (name == "main").then(|| quote!(fn #name() {}));
    quote!(#error #main)
}

fn check(kind: Kind, function: &ItemFn) -> Result<()> {
    let mut errors = Errors::default();
    let signature = &function.sig;
    let macro_name = match kind {
        Kind::Main => "#[glommio::main]",
        Kind::Test => "#[glommio::test]",
    };
    if signature.asyncness.is_none() {
        errors.add(
            signature.fn_token.to_token_stream(),
            format!("{macro_name} runs an `async fn`: write `async` before `fn`"),
        );
    }
    if !signature.inputs.is_empty() {
        let why = format!("a function with {macro_name} takes no arguments");
        errors.add(&signature.inputs, why);
    }
    if let Some(variadic) = &signature.variadic {
        let why = format!("a function with {macro_name} takes no arguments");
        errors.add(variadic, why);
    }
    if !signature.generics.params.is_empty() {
        let why = format!("a function with {macro_name} is not generic");
        errors.add(&signature.generics.params, why);
    }
    if let Some(clause) = &signature.generics.where_clause {
        let why = format!("a function with {macro_name} has no `where` clause");
        errors.add(clause, why);
    }
    let refused: [(Option<&dyn ToTokens>, &str); 3] = [
        (signature.constness.as_ref().map(|it| it as _), "`const`"),
        (
            match &signature.safety {
                Safety::Unsafe(keyword) => Some(keyword as _),
                _ => None,
            },
            "`unsafe`",
        ),
        (signature.abi.as_ref().map(|it| it as _), "of another ABI"),
    ];
    for (found, what) in refused {
        if let Some(found) = found {
            errors.add(found, format!("a function with {macro_name} is not {what}"));
        }
    }
    if kind == Kind::Test {
        let of_std = |path: &Path| path.is_ident("test");
        for attribute in function.attrs.iter().filter(|it| of_std(it.path())) {
            let why = "#[glommio::test] makes a `#[test]` by itself: remove this one".to_owned();
            errors.add(attribute, why);
        }
    }
    errors.into_result()
}

#[derive(Default)]
struct Errors(Option<Error>);

impl Errors {
    fn add(&mut self, at: impl ToTokens, message: String) {
        let error = Error::new_spanned(at, message);
        match &mut self.0 {
            Some(first) => first.combine(error),
            none => *none = Some(error),
        }
    }

    fn into_result(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// What is in the parentheses of the attribute.
#[derive(Default)]
struct Arguments {
    /// How the crate is called where the function is.
    root: Option<Path>,
    placement: Option<TokenStream>,
    start_paused: Option<bool>,
    is_simulated: bool,
}

impl Parse for Arguments {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut arguments = Arguments::default();
        while !input.is_empty() {
            let name = input.call(Ident::parse_any)?;
            let is_second = match name.to_string().as_str() {
                "crate" => arguments.root.is_some(),
                "placement" => arguments.placement.is_some(),
                "start_paused" => arguments.start_paused.is_some(),
                "simulated" => arguments.is_simulated,
                "name" => {
                    let why = "`name` has no effect here: the executor runs on the calling thread, which has a name";
                    return Err(Error::new(name.span(), why));
                }
                _ => {
                    let why = "unknown argument: there are `placement = ..` and `crate = path::to::glommio`, and for tests `start_paused = true` and `simulated`";
                    return Err(Error::new(name.span(), why));
                }
            };
            if is_second {
                return Err(Error::new(name.span(), "this argument is there twice"));
            }
            if name == "simulated" {
                arguments.is_simulated = true;
                if !input.is_empty() {
                    input.parse::<Token![,]>()?;
                }
                continue;
            }
            input.parse::<Token![=]>()?;
            if name == "crate" {
                let path = input.call(Path::parse_mod_style);
                let why = "expected a path, as in `crate = path::to::glommio`";
                arguments.root = Some(path.map_err(|error| Error::new(error.span(), why))?);
            } else if name == "placement" {
                arguments.placement = Some(placement(input)?);
            } else {
                let value: syn::LitBool = input.parse()?;
                arguments.start_paused = Some(value.value);
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(arguments)
    }
}

/// A variant of `Placement`, by its name alone.
fn placement(input: ParseStream) -> Result<TokenStream> {
    const PLACEMENTS: &str = "a placement is `Unbound`, `Fixed(cpu)` or `Fenced(set)`";
    let variant: Ident = input
        .parse()
        .map_err(|error| Error::new(error.span(), PLACEMENTS))?;
    let takes_value = match variant.to_string().as_str() {
        "Unbound" => false,
        "Fixed" | "Fenced" => true,
        _ => return Err(Error::new(variant.span(), PLACEMENTS)),
    };
    if takes_value != input.peek(syn::token::Paren) {
        return Err(Error::new(variant.span(), PLACEMENTS));
    }
    if !takes_value {
        return Ok(quote!(#variant));
    }
    let value;
    parenthesized!(value in input);
    let value: syn::Expr = value.parse()?;
    Ok(quote!(#variant(#value)))
}
