//! The example `pipeline`, which ends by itself.

use std::process::Command;

/// What the example prints.
fn run(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_pipeline"))
        .args(arguments)
        .output()
        .expect("the binary was built for this test");
    assert!(output.status.success(), "{}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

/// The number in front of `words`.
fn number_before(printed: &str, words: &str) -> u64 {
    let before = printed.split(words).next().expect("there is a first piece");
    let word = before.split_whitespace().last().expect("a word in front");
    word.parse()
        .unwrap_or_else(|_| panic!("`{word}` in front of {words}: {printed}"))
}

#[test]
fn every_block_goes_through_and_the_channels_bound_the_memory() {
    let sums = [1, 8].map(|channel: u64| {
        let channel_argument = channel.to_string();
        let arguments = [
            "--blocks",
            "400",
            "--pause-each",
            "50",
            "--channel",
            &channel_argument,
        ];
        let printed = run(&arguments);
        assert_eq!(number_before(&printed, " blocks, sum"), 400);
        // The channel, one at each end of it. Results do not count.
        let most = number_before(&printed, " blocks in memory");
        assert!((1..=channel + 2).contains(&most), "{printed}");
        for queue in ["read", "digest", "store"] {
            assert!(printed.contains(&format!("{queue} ran ")), "{printed}");
        }
        printed.lines().next().map(str::to_owned)
    });
    assert_eq!(sums[0], sums[1], "whatever the sizes of the channels");
}
