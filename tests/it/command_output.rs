//! What commands do with their output and their files when something is refused, or nobody reads (H19, H20).

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs feedgate in `folder`.
fn feedgate(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    command.args(args).env_clear().current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn h19_a_command_whose_output_nobody_reads_ends_quietly() {
    let folder = tempfile::tempdir().unwrap();
    assert!(feedgate(folder.path(), &["migrate"]).status.success());
    assert!(feedgate(folder.path(), &["token", "create", "--login", "ann"]).status.success());
    let commands: [&[&str]; 6] = [
        &["token", "list"],
        &["account", "list"],
        &["check-config"],
        &["export"],
        &["man"],
        &["--help"],
    ];
    for args in commands {
        let (read, written) = std::io::pipe().unwrap();
        drop(read);
        let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
        let command = command.args(args).env_clear().current_dir(folder.path());
        let ended = command.stdin(Stdio::null()).stdout(written).output().unwrap();
        let told = text(&ended.stderr);
        assert!(
            matches!(ended.status.code(), Some(0 | 141)),
            "{args:?}: {:?} {told}",
            ended.status
        );
        assert!(!told.contains("panicked") && !told.contains("roken pipe"), "{args:?}: {told}");
    }
}

#[test]
fn h20_an_export_that_is_refused_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| feedgate(folder.path(), args);
    let names = || fs::read_dir(folder.path()).unwrap().count();
    for _ in 0..2 {
        let refused = run(&["export", "state.jsonl"]);
        let told = text(&refused.stderr);
        assert!(
            !refused.status.success() && told.contains("is not the database of a gateway"),
            "{told}"
        );
        assert_eq!(names(), 0);
    }
    assert!(run(&["migrate"]).status.success());
    let done = run(&["export", "state.jsonl"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(names(), 2, "the database and the export");
    let exported = fs::read(folder.path().join("state.jsonl")).unwrap();
    let again = run(&["export", "state.jsonl"]);
    assert!(text(&again.stderr).contains("cannot create state.jsonl"), "{}", text(&again.stderr));
    assert_eq!(fs::read(folder.path().join("state.jsonl")).unwrap(), exported);
}

#[test]
fn h20_check_config_refuses_what_serve_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, value: &str, args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
        let command = command.args(args).env_clear().current_dir(folder.path()).env(name, value);
        command.stdin(Stdio::null()).output().unwrap()
    };
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    for (value, want) in [
        ("sqlite:missing/folder", "the folder missing does not exist"),
        ("sqlite:missing/gate.db", "the folder missing does not exist"),
    ] {
        for args in [&["check-config"][..], &serve] {
            let refused = run("FEEDGATE_DATABASE", value, args);
            let told = text(&refused.stderr);
            assert!(!refused.status.success() && told.contains(want), "{value} {args:?}: {told}");
        }
    }
    fs::write(folder.path().join("pair.pem"), "no certificate").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    let command = command.arg("check-config").env_clear().current_dir(folder.path());
    let command = command.env("FEEDGATE_TLS_CERT", "pair.pem").env("FEEDGATE_TLS_KEY", "pair.pem");
    let refused = command.output().unwrap();
    let told = text(&refused.stderr);
    assert!(!refused.status.success() && told.contains("it contains no PEM certificate"), "{told}");
    let fine = run("FEEDGATE_DATABASE", "sqlite:new", &["check-config"]);
    assert!(fine.status.success(), "{}", text(&fine.stderr));
    assert!(!folder.path().join("new").exists(), "nothing is created");
}
