//! Optional features of the kernel; each has a fallback.
//!
//! | feature         | what for                                             | kernel | known by           |
//! |-----------------|------------------------------------------------------|--------|--------------------|
//! | `poll_multi`    | one submission reports all data of a socket          | 6.1    | operation `SENDMSG_ZC` |
//! | `absolute_wait` | waits and timeouts end at a moment, not after a time | 6.12   | flag `MIN_TIMEOUT` |
//! | `paths`         | renaming and removing files                          | 5.11   | both operations    |
//! | `make_directory`| making directories                                   | 5.15   | the operation      |
//! | `links`         | hard and symbolic links                              | 5.15   | both operations    |
//! | `truncate`      | setting the size of a file                           | 6.9    | the operation      |
//! | `registered`    | direct I/O in memory whose pages the kernel knows    | 5.1    | operation `READ_FIXED` |
//! | `no_iowait`     | sleeps that do not count as waits for a device       | 6.15   | flag `NO_IOWAIT`   |
//! | `registered_ring` | the ring is found in a table of its thread         | 5.18   | operation `MSG_RING` |
//!
//! `absolute_wait` is lacking in a time namespace, too: see
//! [`time_namespace`](crate::sys::time_namespace).
//!
//! Multishot polls are older (5.13, and a ring needs one for wake-ups), but before 6.1 the event of
//! several wakes has the bits of the first alone: the end of a stream may be missing.
//!
//! Which of them a kernel has shows in what it says of itself: each is told by an operation or a
//! flag that came with the same release. Version strings say nothing of what was ported back.
//!
//! The environment variable `GLOMMIO_RING_WITHOUT` names features, separated by commas, that are
//! not used although the kernel has them: it tests the way around them on a modern kernel, and is a
//! way around a kernel's defect without a new build.

use std::fmt;

use io_uring::{Parameters, Probe, opcode};

/// Something that is used where the kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    /// Hearing of all that comes to a socket with one submission.
    PollMulti,
    /// Waiting until a moment of the monotonic clock, and setting timeouts to one.
    AbsoluteWait,
    /// Renaming and removing files.
    Paths,
    /// Making directories.
    MakeDirectory,
    /// Making hard and symbolic links.
    Links,
    /// Setting the size of a file.
    Truncate,
    /// Direct I/O in memory whose pages the kernel has looked up once.
    Registered,
    /// Sleeping without being counted as a thread that waits for a device.
    NoIoWait,
    /// Entering the ring by its number in the table of the thread, not by its descriptor.
    RegisteredRing,
}

/// Each with its name.
const ALL: [(Feature, &str); 9] = [
    (Feature::PollMulti, "poll_multi"),
    (Feature::AbsoluteWait, "absolute_wait"),
    (Feature::Paths, "paths"),
    (Feature::MakeDirectory, "make_directory"),
    (Feature::Links, "links"),
    (Feature::Truncate, "truncate"),
    (Feature::Registered, "registered"),
    (Feature::NoIoWait, "no_iowait"),
    (Feature::RegisteredRing, "registered_ring"),
];

/// What the kernel says of itself with each ring, as far as features are known by it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KernelFlags {
    has_min_timeout: bool,
    has_no_iowait: bool,
}

impl KernelFlags {
    pub(super) fn of(params: &Parameters) -> Self {
        KernelFlags {
            has_min_timeout: params.is_feature_min_timeout(),
            has_no_iowait: params.is_feature_no_iowait(),
        }
    }
}

/// A set of [`Feature`]s.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Features(u32);

impl Features {
    pub(super) fn of_kernel(probe: &Probe, flags: KernelFlags) -> Self {
        let is_present = |feature: &Feature| match feature {
            Feature::PollMulti => probe.is_supported(opcode::SendMsgZc::CODE),
            Feature::AbsoluteWait => flags.has_min_timeout,
            Feature::NoIoWait => flags.has_no_iowait,
            Feature::Paths => [opcode::RenameAt::CODE, opcode::UnlinkAt::CODE]
                .into_iter()
                .all(|code| probe.is_supported(code)),
            Feature::MakeDirectory => probe.is_supported(opcode::MkDirAt::CODE),
            Feature::Links => [opcode::LinkAt::CODE, opcode::SymlinkAt::CODE]
                .into_iter()
                .all(|code| probe.is_supported(code)),
            Feature::Truncate => probe.is_supported(opcode::Ftruncate::CODE),
            Feature::RegisteredRing => probe.is_supported(opcode::MsgRingData::CODE),
            Feature::Registered => probe.is_supported(opcode::ReadFixed::CODE),
        };
        Features::all().filter(is_present).collect()
    }

    /// What the environment says to do without.
    pub(super) fn forbidden() -> Self {
        let list = std::env::var("GLOMMIO_RING_WITHOUT").unwrap_or_default();
        let (forbidden, unknown) = Features::named(&list);
        for name in unknown {
            let known = ALL.map(|(_, name)| name).join(", ");
            tracing::warn!("GLOMMIO_RING_WITHOUT: {name} is not one of {known}");
        }
        forbidden
    }

    /// Those of a ring that is not the kernel's: all that change what operations there are.
    pub(super) fn of_others() -> Self {
        let is_left_out = |it: &Feature| {
            matches!(
                it,
                Feature::Registered | Feature::RegisteredRing | Feature::NoIoWait
            )
        };
        Features::all().filter(|it| !is_left_out(it)).collect()
    }

    fn all() -> impl Iterator<Item = Feature> {
        ALL.into_iter().map(|(feature, _)| feature)
    }

    /// All but these.
    pub(super) fn others(self) -> Self {
        Features::all().filter(|it| !self.has(*it)).collect()
    }

    /// These in a process whose clock may not be the host's.
    pub(super) fn in_shifted_time(self) -> Self {
        Features(self.0 & !bit(Feature::AbsoluteWait))
    }

    /// Those of these that are also among `others`.
    pub(super) fn and(self, others: Self) -> Self {
        Features(self.0 & others.0)
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
                let known = ALL.into_iter().find(|(_, known)| *known == name);
                if known.is_none() {
                    unknown.push(name);
                }
                known.map(|(feature, _)| feature)
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

/// As the environment names them.
impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let present = ALL.into_iter().filter(|(feature, _)| self.has(*feature));
        let names: Vec<&str> = present.map(|(_, name)| name).collect();
        f.write_str(&names.join(","))
    }
}

impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
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
        let (features, unknown) = Features::named(" warp ,poll_multi,, poll_Multi");
        assert_eq!(unknown, ["warp", "poll_Multi"]);
        assert_eq!(features, Features::from_iter([Feature::PollMulti]));
        assert_eq!(features.to_string(), "poll_multi");
        let (features, _) = Features::named("paths,poll_multi");
        assert!(features.has(Feature::PollMulti) && features.has(Feature::Paths));
        assert_eq!(format!("{features:?}"), "[poll_multi,paths]");
    }

    #[test]
    fn a_set_its_others_and_what_is_common() {
        let none = Features::default();
        let all = none.others();
        let of_files = "paths,make_directory,links,truncate,registered,no_iowait,registered_ring";
        let sockets_and_time = "poll_multi,absolute_wait";
        assert_eq!(all.to_string(), format!("{sockets_and_time},{of_files}"));
        assert_eq!(all.others(), none);
        let (one, _) = Features::named("poll_multi");
        assert_eq!(
            one.others().to_string(),
            format!("absolute_wait,{of_files}")
        );
        assert_eq!(all.and(one), one);
        assert_eq!(one.others().and(one), none);
        let unshifted = all.in_shifted_time();
        assert_eq!(unshifted.to_string(), format!("poll_multi,{of_files}"));
        assert_eq!(unshifted.in_shifted_time(), unshifted);
    }

    #[test]
    fn what_a_kernel_knows_tells_what_it_has() {
        let ignorant = Probe::new();
        let mut flags = KernelFlags::default();
        assert_eq!(Features::of_kernel(&ignorant, flags), Features::default());
        flags.has_min_timeout = true;
        let waits = Features::of_kernel(&ignorant, flags);
        assert_eq!(waits.to_string(), "absolute_wait");
        flags.has_no_iowait = true;
        let sleeps = Features::of_kernel(&ignorant, flags);
        assert_eq!(sleeps.to_string(), "absolute_wait,no_iowait");
    }
}
