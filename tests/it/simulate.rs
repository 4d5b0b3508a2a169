//! `feedgate simulate-schedule`, on a trace of its own making.
//!
//! The trace in `fixtures/schedule/` is made here, from seeded dice: feeds of very
//! different rates that sleep at night, publish in bursts, and sometimes die.
//! `UPDATE_FIXTURES=1` writes it anew.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const DAYS: i64 = 45;
/// 1 September 2026.
const START_S: i64 = 1_788_220_800;

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/schedule/sample.csv")
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Hours that pass for every entry: 40 feeds from 12 entries a day to one a month.
fn made_up() -> String {
    let mut text = String::from("# Made up by tests/it/simulate.rs.\nfeed,published\n");
    for feed in 0..40_u32 {
        let mut jitter = Random(u64::from(feed) * 7_919 + 1);
        let per_day = 12.0 / 1.16_f64.powi(feed as i32);
        let dies_after_days = if feed % 7 == 6 { 25 } else { DAYS };
        let mut at = 0.0;
        loop {
            at += -(1.0 - jitter.roll()).ln() / per_day * 86_400.0;
            if at >= (dies_after_days * 86_400) as f64 {
                break;
            }
            // At night most of what would have come does not.
            let hour = (at as i64 / 3_600 + i64::from(feed)) % 24;
            if hour < 7 && jitter.roll() < 0.8 {
                continue;
            }
            let burst = if jitter.roll() < 0.1 { 3 } else { 1 };
            for n in 0..burst {
                let second = START_S + at as i64 + n * 90;
                let date = chrono::DateTime::from_timestamp(second, 0).unwrap();
                writeln!(text, "feed-{feed:02},{}", date.format("%Y-%m-%dT%H:%M:%SZ")).unwrap();
            }
        }
    }
    text
}

fn simulate(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    command.arg("simulate-schedule").args(arguments).env_clear();
    command.env("FEEDGATE_MIN_PERIOD_S", "60").output().unwrap()
}

/// The rows of a table: policy, and polls, mean, p50, p90, per feed and missed.
fn rows(told: &str, heading: &str) -> Vec<(String, Vec<f64>)> {
    let table = told.split(heading).nth(1).unwrap_or_else(|| panic!("no {heading} in:\n{told}"));
    let lines = table.lines().skip(2).take_while(|line| !line.is_empty());
    let row = |line: &str| {
        let (name, numbers) = line.split_at(28);
        let numbers = numbers.split_whitespace().map(|number| number.parse().unwrap());
        (name.trim().to_owned(), numbers.collect())
    };
    lines.map(row).collect()
}

#[test]
fn the_sample_is_what_the_dice_make_of_it() {
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        std::fs::create_dir_all(sample().parent().unwrap()).unwrap();
        std::fs::write(sample(), made_up()).unwrap();
    }
    assert!(std::fs::read_to_string(sample()).unwrap() == made_up(), "UPDATE_FIXTURES=1 writes it");
}

#[test]
fn at_the_same_number_of_polls_ours_finds_entries_soonest() {
    let sample = sample();
    let file = sample.to_str().unwrap();
    let output = simulate(&[file]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));

    let set = rows(&told, "with the settings of their authors");
    assert_eq!(set.len(), 4, "{told}");
    assert!((set[1].1[0] - 24.0).abs() < 0.2, "once an hour:\n{told}");
    let scaled = rows(&told, "scaled to");
    let ours = &scaled[0];
    assert_eq!(ours.0, "feedgate");
    for other in &scaled[1..] {
        assert!((other.1[0] / ours.1[0] - 1.0).abs() < 0.02, "as many polls:\n{told}");
        assert!(ours.1[1] < other.1[1], "the least delay by mean:\n{told}");
        assert!(ours.1[3] < other.1[3], "and by the slowest tenth:\n{told}");
    }
    let again = simulate(&[file]);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), told, "the same each time");

    let scarce = simulate(&["--budget", "8", file]);
    let told = String::from_utf8(scarce.stdout).unwrap();
    for (name, numbers) in rows(&told, "scaled to 8.0") {
        assert!((numbers[0] - 8.0).abs() < 0.2, "{name}:\n{told}");
    }
}

#[test]
fn what_cannot_be_played_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.csv");
    std::fs::write(&file, "feed,published\ntides,2026-09-01T00:00:00Z\ntides,noon\n").unwrap();
    for (arguments, want) in [
        (vec![file.to_str().unwrap()], "line 3"),
        (vec!["/nowhere/at/all.csv"], "cannot read"),
        (vec!["--warm-up", "99", sample().to_str().unwrap()], "--warm-up must be less"),
    ] {
        let output = simulate(&arguments);
        let why = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{why}");
        assert!(why.contains(want), "{why}");
    }
}
