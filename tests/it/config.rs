//! Settings as an operator meets them, on the command line.

use std::fs;
use std::process::{Command, Output};

use feedgate::config::SETTINGS;

/// Runs `feedgate check-config` with nothing but this in its environment.
fn check_config(environment: &[(&str, &str)], args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_feedgate"))
        .arg("check-config")
        .args(args)
        .env_clear()
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

#[test]
fn what_takes_effect_is_printed_with_its_origin_and_without_passwords() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("feedgate.toml");
    fs::write(&file, "log = \"warn\"\njob_lease_s = 45\n").unwrap();
    let file = file.to_str().unwrap();
    let environment = [
        ("FEEDGATE_DATABASE", "postgres://me:hunter2@db.test/feedgate"),
        ("FEEDGATE_CONFIG", file),
        ("FEEDGATE_LOG", "debug"),
    ];
    let output = check_config(&environment, &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    let squeezed: Vec<String> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in [
        "FEEDGATE_DATABASE=postgres://me:***@db.test/feedgate # environment",
        "FEEDGATE_LOG=debug # environment",
        "FEEDGATE_JOB_LEASE_S=45 # file",
        "FEEDGATE_LISTEN=127.0.0.1:8080 # default",
    ] {
        assert!(squeezed.iter().any(|held| held == line), "{line} not in:\n{text}");
    }
    assert_eq!(squeezed.len(), SETTINGS.len());
}

#[test]
fn all_faults_are_told_at_once_and_nothing_starts() {
    let environment = [
        ("FEEDGATE_LISTN", "127.0.0.1:1"),
        ("FEEDGATE_DELIVERY_TIMEOUT_S", "never"),
        ("FEEDGATE_DATABASE_FILE", "/nowhere/at/all"),
    ];
    let output = check_config(&environment, &["--database", "mysql://db.test"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    for fault in [
        "unknown setting `FEEDGATE_LISTN`; did you mean `FEEDGATE_LISTEN`?",
        "FEEDGATE_DELIVERY_TIMEOUT_S must be a number of seconds from 1 to 60 (default: 10), \
         but is \"never\" in the environment",
        "FEEDGATE_DATABASE_FILE: cannot read /nowhere/at/all",
        "--database must be `sqlite:FOLDER`, `sqlite:FILE.db` or `postgres://",
        "but the value on the command line is not valid",
    ] {
        assert!(text.contains(fault), "{fault} not in:\n{text}");
    }
    assert!(!text.contains("mysql"), "what is meant as a secret is not shown:\n{text}");
}

#[test]
fn a_fault_of_the_file_is_told_in_the_words_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("feedgate.toml");
    fs::write(&file, "job_lease_s = 45\nfetch_timeout_s = 60\nlisten = 'everywhere'\n").unwrap();
    let output = check_config(&[], &["--config", file.to_str().unwrap()]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("  listen must be an address and a port"), "{text}");
    assert!(text.contains("but is \"everywhere\" in the file"), "{text}");
    assert!(text.contains("  job_lease_s must be longer than fetch_timeout_s"), "{text}");
}

#[test]
fn help_lists_every_setting_with_its_default() {
    let output = check_config(&[], &["--help"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for setting in SETTINGS {
        let entry = format!("  {}={}\n", setting.name, setting.default);
        assert!(text.contains(&entry), "{entry} not in:\n{text}");
    }
}

#[test]
fn t11_a_contact_is_one_line_without_control_characters() {
    for (contact, control) in [
        ("me@a.test\r\nX-Evil: 1", "U+000D"),
        ("me\n", "U+000A"),
        ("a\u{1b}[2J", "U+001B"),
        ("a\u{85}b", "U+0085"),
    ] {
        let contact = format!("{contact}b");
        let output = check_config(&[("FEEDGATE_CONTACT", &contact)], &[]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        let want = "FEEDGATE_CONTACT must be one line of text without control characters";
        assert!(text.contains(want) && text.contains(control), "{text}");
        assert!(!text.trim_end().contains(&contact), "the value is escaped: {text}");
    }
    assert!(check_config(&[("FEEDGATE_CONTACT", "Ünï <me@a.test>")], &[]).status.success());
}
