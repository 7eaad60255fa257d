//! What newer kernels offer and older ones are done without.
//!
//! | feature        | what for                                             | kernel | known by the operation |
//! |----------------|------------------------------------------------------|--------|------------------------|
//! | `accept_multi` | one submission accepts all connections of a listener | 5.19   | `SOCKET`               |
//! | `poll_multi`   | one submission tells of all that comes to a socket   | 5.19   | `SOCKET`               |
//!
//! Multishot polls are older (5.13, and a ring needs one for wake-ups), but those of sockets are left to
//! kernels in which they have settled.
//!
//! Which of them a kernel has shows in the operations that it knows: each is told by one that came with the
//! same release. Version strings say nothing of what was ported back.
//!
//! The environment variable `GLOMMIO_RING_WITHOUT` names features, separated by commas, that are not used
//! although the kernel has them: it tests the way around them on a modern kernel, and is a way around
//! a kernel's defect without a new build.

use io_uring::{Probe, opcode};

/// Something that is used where the kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    /// Accepting with one submission as long as connections come.
    AcceptMulti,
    /// Hearing of all that comes to a socket with one submission.
    PollMulti,
}

/// Each with its name and with an operation that came with the same release.
const ALL: [(Feature, &str, u8); 2] = [
    (Feature::AcceptMulti, "accept_multi", opcode::Socket::CODE),
    (Feature::PollMulti, "poll_multi", opcode::Socket::CODE),
];

/// A set of [`Feature`]s.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Features(u32);

impl Features {
    /// What the kernel has and the environment does not forbid.
    pub(super) fn of(probe: &Probe) -> Self {
        let forbidden = std::env::var("GLOMMIO_RING_WITHOUT").unwrap_or_default();
        let (forbidden, unknown) = Features::named(&forbidden);
        for name in unknown {
            let known: Vec<&str> = ALL.iter().map(|(_, name, _)| *name).collect();
            tracing::warn!(
                "GLOMMIO_RING_WITHOUT: {name} is not one of {}",
                known.join(", ")
            );
        }
        ALL.into_iter()
            .filter(|(_, _, operation)| probe.is_supported(*operation))
            .map(|(feature, ..)| feature)
            .filter(|feature| !forbidden.has(*feature))
            .collect()
    }

    pub(crate) fn has(self, feature: Feature) -> bool {
        self.0 & bit(feature) != 0
    }

    /// The features in a list of names, and the names that are of none.
    fn named(list: &str) -> (Self, Vec<&str>) {
        let mut unknown = Vec::new();
        let features = list
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .filter_map(|name| {
                let known = ALL.into_iter().find(|(_, known, _)| *known == name);
                if known.is_none() {
                    unknown.push(name);
                }
                known.map(|(feature, ..)| feature)
            })
            .collect();
        (features, unknown)
    }
}

fn bit(feature: Feature) -> u32 {
    1 << feature as u32
}

impl FromIterator<Feature> for Features {
    fn from_iter<I: IntoIterator<Item = Feature>>(features: I) -> Self {
        Features(features.into_iter().map(bit).fold(0, |all, one| all | one))
    }
}

/// By their names in the environment.
impl std::fmt::Debug for Features {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let present = ALL.iter().filter(|(feature, ..)| self.has(*feature));
        f.debug_list()
            .entries(present.map(|(_, name, _)| name))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_features_and_the_others_are_told() {
        let (features, unknown) = Features::named("");
        assert_eq!(features, Features::default());
        assert!(unknown.is_empty());
        let (features, unknown) = Features::named(" warp ,accept_multi,, accept_Multi");
        assert_eq!(unknown, ["warp", "accept_Multi"]);
        assert_eq!(features, Features::from_iter([Feature::AcceptMulti]));
        assert_eq!(format!("{features:?}"), r#"["accept_multi"]"#);
        let (features, _) = Features::named("poll_multi,accept_multi");
        assert!(features.has(Feature::PollMulti) && features.has(Feature::AcceptMulti));
    }

    #[test]
    fn a_kernel_that_knows_no_operation_has_no_feature() {
        assert_eq!(Features::of(&Probe::new()), Features::default());
    }
}
