//! The command that makes a page, to be repeated.

/// The features that this was built with, as on the command line.
pub const FEATURES: &str = if cfg!(feature = "peers") {
    " --features peers"
} else {
    ""
};

/// The command that ran this bench, to be repeated; `features` as on the command line.
pub fn command(bench: &str, features: &str) -> String {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let separator = if arguments.is_empty() { "" } else { " -- " };
    format!(
        "cargo bench -p benches --bench {bench}{features}{separator}{}",
        arguments.join(" ")
    )
}
