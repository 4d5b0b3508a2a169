//! What packages contain.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn feedgate(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    command.args(args).env_clear().stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn files_of_the_package_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest: toml::Table =
        toml::from_str(&fs::read_to_string(root.join("Cargo.toml")).unwrap()).unwrap();
    let assets = manifest["package"]["metadata"]["deb"]["assets"].as_array().unwrap();
    assert!(assets.len() > 5);
    for asset in assets {
        let source = asset[0].as_str().unwrap();
        let is_built = source.starts_with("target/");
        assert!(is_built || root.join(source).is_file(), "{source} does not exist");
    }
}

#[test]
fn the_sample_settings_are_valid() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/feedgate.toml");
    let checked = feedgate(&["check-config", "--config", sample.to_str().unwrap()]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));

    // The settings that are commented out are valid, too.
    let folder = tempfile::tempdir().unwrap();
    let all = fs::read_to_string(&sample).unwrap();
    let lines = all.lines().map(|line| match line.strip_prefix("# ") {
        Some(setting) if setting.contains(" = \"") => format!("{setting}\n"),
        _ => format!("{line}\n"),
    });
    fs::write(folder.path().join("all.toml"), lines.collect::<String>()).unwrap();
    let all = folder.path().join("all.toml");
    let checked = feedgate(&["check-config", "--config", all.to_str().unwrap()]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    assert!(text(&checked.stdout).contains("feeds.example.org"));
}
