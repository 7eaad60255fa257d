//! `Debug` of types by some of their fields.

#![forbid(unsafe_code)]

/// Implements `Debug` of a value `it` by fields of it and by further values, each with its name. A type
/// has its parameters in brackets, and `; ..` at the end says that there is more:
/// `[T: Send] Ends[T], it: position, len: it.range.len(); ..`. Or by what fills a [`std::fmt::DebugStruct`]:
/// `End, it, debug => it.channel.describe(debug)`.
macro_rules! impl_debug {
    (@value $it:ident $field:ident) => { &$it.$field };
    (@value $it:ident $field:ident $value:expr) => { &$value };
    (@end $debug:ident) => { $debug.finish() };
    (@end $debug:ident ..) => { $debug.finish_non_exhaustive() };
    (
        $(#[$about:meta])*
        $([$($generics:tt)*])? $Type:ident $([$($arguments:tt)*])?, $it:ident:
        $($field:ident $(: $value:expr)?),* $(; $end:tt)?
    ) => {
        $(#[$about])*
        impl$(<$($generics)*>)? std::fmt::Debug for $Type$(<$($arguments)*>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $it = self;
                let mut debug = f.debug_struct(stringify!($Type));
                $(debug.field(stringify!($field), impl_debug!(@value $it $field $($value)?));)*
                impl_debug!(@end debug $($end)?)
            }
        }
    };
    (
        $([$($generics:tt)*])? $Type:ident $([$($arguments:tt)*])?, $it:ident,
        $debug:ident => $describe:expr
    ) => {
        impl$(<$($generics)*>)? std::fmt::Debug for $Type$(<$($arguments)*>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let ($it, $debug) = (self, f.debug_struct(stringify!($Type)));
                $describe
            }
        }
    };
}
