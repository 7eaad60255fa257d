//! What is promised, how it is checked while the run goes on, and the judgement at its end.

/// An enumeration whose members have a label, and a text that says what they are.
macro_rules! labelled {
    ($(#[$doc:meta])* $name:ident; $($member:ident, $label:literal: $meaning:literal;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum $name { $($member),* }

        impl $name {
            pub(crate) const ALL: [$name; [$($label),*].len()] = [$($name::$member),*];

            pub(crate) fn label(self) -> &'static str {
                match self { $($name::$member => $label),* }
            }

            pub(crate) fn meaning(self) -> &'static str {
                match self { $($name::$member => $meaning),* }
            }
        }
    };
}

pub(crate) mod checker;
pub(crate) mod control;
pub(crate) mod executor_stats;
pub(crate) mod invariants;
pub(crate) mod library;
pub(crate) mod model;
pub(crate) mod peak;
pub(crate) mod probe;
pub(crate) mod timeliness;
pub(crate) mod verdict;
