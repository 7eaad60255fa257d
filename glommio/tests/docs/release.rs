//! The identity of a build: `BUILD`, `CHANGELOG.md` and the manifests name the same release.

use std::fs;

use crate::root;

fn changelog() -> String {
    fs::read_to_string(root().join("CHANGELOG.md")).expect("it is there")
}

/// The headings of the second level with what is below each.
fn sections(text: &str) -> Vec<(&str, &str)> {
    text.split("\n## ")
        .skip(1)
        .map(|section| section.split_once('\n').unwrap_or((section, "")))
        .collect()
}

/// The number and the date of `Wheel release 1 (2026-11-25)`.
fn release(heading: &str) -> Option<(u32, [u32; 3])> {
    let rest = heading.strip_prefix("Wheel release ")?;
    let (number, date) = rest.strip_suffix(')')?.split_once(" (")?;
    let date: Vec<_> = date.split('-').map(|it| it.parse().ok()).collect();
    let [Some(year), Some(month), Some(day)] = date[..] else {
        return None;
    };
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day);
    is_date.then_some((number.parse().ok()?, [year, month, day]))
}

/// A release gives *Unreleased* a number and a date, and `version.rs` the same.
#[test]
fn the_build_names_the_newest_release_of_the_changelog() {
    let changelog = changelog();
    let sections = sections(&changelog);
    assert_eq!(sections[0].0, "Unreleased", "the first heading");
    let (newest, _) = sections[1];
    let wanted = format!("glommio 0.9.0, {}", newest.replace("Wheel", "wheel"));
    let text = glommio::BUILD;
    assert!(
        text.starts_with(&wanted),
        "`RELEASE` in version.rs: {text:?} should begin with {wanted:?}"
    );
}

#[test]
fn releases_have_a_number_and_a_date_and_the_newest_comes_first() {
    let changelog = changelog();
    let releases: Vec<_> = (sections(&changelog).iter().skip(1))
        .map(|(heading, body)| {
            assert!(body.contains("\n- "), "{heading} has no entries");
            release(heading).unwrap_or_else(|| panic!("{heading:?} has no number and date"))
        })
        .collect();
    for (at, &(number, date)) in releases.iter().enumerate() {
        assert_eq!(number as usize, releases.len() - at, "numbers count up");
        assert!(releases[at..].iter().all(|&(_, older)| older <= date));
    }
}

/// `BUILD` names the features of this build and no others.
#[test]
fn the_build_names_its_features() {
    let (_, features) = (glommio::BUILD.split_once("features")).expect("features");
    let names: Vec<_> = features.split(' ').skip(1).collect();
    for (feature, is_on) in [
        ("timing-wheel", cfg!(feature = "timing-wheel")),
        ("macros", cfg!(feature = "macros")),
        ("metrics", cfg!(feature = "metrics")),
        ("debugging", cfg!(feature = "debugging")),
    ] {
        assert_eq!(names.contains(&feature), is_on, "{features}");
    }
    let is_for_tests = cfg!(any(feature = "audit", feature = "bench"));
    assert_eq!(
        features.ends_with(" (for tests of the crate)"),
        is_for_tests
    );
    assert_eq!(glommio::BUILD.ends_with("no features"), features.is_empty());
    assert!(!names.contains(&""), "{features:?}");
}

/// The address of the repository is a setting of the workspace, which `packaging/set-url` changes; no
/// page has a copy of it.
#[test]
fn the_address_of_the_repository_is_in_one_place() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("it is there");
    let (_, rest) = (manifest.split_once("\nrepository = \"")).expect("the address");
    let address = rest.split('"').next().expect("its end");
    assert!(address.starts_with("https://"), "{address}");
    for page in crate::pages() {
        let text = fs::read_to_string(root().join(&page)).expect("a page");
        assert!(!text.contains(address), "{} has {address}", page.display());
        assert!(!text.contains("<URL"), "{}", page.display());
    }
}

#[test]
fn headings_are_understood() {
    assert_eq!(
        release("Wheel release 12 (2027-01-31)"),
        Some((12, [2027, 1, 31]))
    );
    for other in [
        "Unreleased",
        "Wheel release 1",
        "Wheel release 1 (soon)",
        "Wheel release 1 (2026-13-01)",
        "Wheel release 1 (2026-11)",
    ] {
        assert_eq!(release(other), None, "{other}");
    }
    let text = "# A\n\n## B\nc\n\n## D\n";
    assert_eq!(sections(text), [("B", "c\n"), ("D", "")]);
}
