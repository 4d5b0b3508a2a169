//! What packages contain.

use std::fs;
use std::os::unix::fs::PermissionsExt;
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
fn help_says_what_a_command_returns_and_reads_and_where_to_read_on() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut commands = commands();
    assert!(commands.len() > 15, "{commands:?}");
    commands.push(String::new());
    for command in commands {
        let args: &[&str] = if command.is_empty() { &["--help"] } else { &[&command, "--help"] };
        let displayed = feedgate(args);
        let help = text(&displayed.stdout);
        for heading in ["Exit codes:", "Environment:", "Examples:", "Documentation:"] {
            assert!(help.contains(&format!("\n{heading}\n  ")), "{command}: {heading}\n{help}");
        }
        let (_, pages) = help.rsplit_once("Documentation:\n").unwrap();
        for page in pages.split_whitespace().filter(|word| word.contains(".md")) {
            let (file, anchor) = page.split_once('#').unwrap_or((page, ""));
            let written = fs::read_to_string(root.join(file)).unwrap();
            let headings = written.lines().filter(|line| line.starts_with('#'));
            let mut anchors = headings.map(|line| {
                line.trim_start_matches('#').trim().to_ascii_lowercase().replace(' ', "-")
            });
            assert!(anchor.is_empty() || anchors.any(|one| one == anchor), "{command}: {page}");
        }
    }
}

/// The commands that `feedgate -h` lists.
fn commands() -> Vec<String> {
    let displayed = feedgate(&["-h"]);
    let help = text(&displayed.stdout);
    let (_, listed) = help.split_once("Commands:\n").unwrap();
    let (listed, _) = listed.split_once("\n\n").unwrap();
    let names = listed.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help").map(str::to_owned).collect()
}

#[test]
fn each_command_has_a_man_page_without_faults() {
    let folder = tempfile::tempdir().unwrap();
    let written = feedgate(&["man", folder.path().to_str().unwrap()]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    let mut names = vec!["feedgate".to_owned(), "feedgate-token-create".to_owned()];
    names.extend(commands().into_iter().map(|command| format!("feedgate-{command}")));
    for name in &names {
        let page = fs::read_to_string(folder.path().join(format!("{name}.1"))).unwrap();
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION"] {
            assert!(page.contains(&format!("\n.SH {section}\n")), "{name}: {section}\n{page}");
        }
    }
    let page = fs::read_to_string(folder.path().join("feedgate-backup.1")).unwrap();
    for section in ["EXIT STATUS", "ENVIRONMENT", "EXAMPLES", "SEE ALSO"] {
        assert!(
            page.contains(&format!("\n.SH \"{section}\"\n"))
                || page.contains(&format!("\n.SH {section}\n")),
            "{section}\n{page}"
        );
    }
    let mut mandoc = Command::new("mandoc");
    mandoc.args(["-Tlint", "-Werror"]);
    for page in fs::read_dir(folder.path()).unwrap() {
        mandoc.arg(page.unwrap().path());
    }
    let linted = mandoc.output().expect("mandoc, which tests/run installs");
    assert!(linted.status.success(), "{}", text(&linted.stdout));
}

#[test]
fn bash_completes_commands_and_options() {
    let folder = tempfile::tempdir().unwrap();
    let script = feedgate(&["completions", "bash"]);
    assert!(script.status.success(), "{}", text(&script.stderr));
    let file = folder.path().join("feedgate.bash");
    fs::write(&file, &script.stdout).unwrap();
    #[rustfmt::skip]
    let cases = [
        ("feedgate ser", "serve"),
        ("feedgate token cre", "create"),
        ("feedgate serve --lis", "--listen"),
        ("feedgate completions po", "powershell"),
    ];
    for (line, want) in cases {
        // What bash does when the tabulator is pressed.
        let complete = "source \"$1\"; COMP_LINE=$2; COMP_POINT=${#2}; COMP_WORDS=($2); \
                        COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); \
                        completer=$(complete -p feedgate | sed 's/.*-F \\([^ ]*\\).*/\\1/'); \
                        $completer feedgate \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"; \
                        printf '%s\\n' \"${COMPREPLY[@]}\"";
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", complete, "bash"]).arg(&file).arg(line);
        let completed = bash.output().unwrap();
        assert_eq!(text(&completed.stdout).trim(), want, "{line}: {}", text(&completed.stderr));
    }
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let script = feedgate(&["completions", shell]);
        assert!(text(&script.stdout).contains("simulate-schedule"), "{shell}");
    }
}

#[test]
fn the_sample_settings_are_valid() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/feedgate.toml");
    let checked = feedgate(&["check-config", "--config", sample.to_str().unwrap()]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));

    // The settings that are commented out are valid, too; files with secrets are not there.
    let folder = tempfile::tempdir().unwrap();
    let all = fs::read_to_string(&sample).unwrap();
    let lines = all.lines().map(|line| match line.strip_prefix("# ") {
        Some(setting) if setting.contains(" = \"") && !setting.contains("_file") => {
            format!("{setting}\n")
        }
        _ => format!("{line}\n"),
    });
    fs::write(folder.path().join("all.toml"), lines.collect::<String>()).unwrap();
    let all = folder.path().join("all.toml");
    let checked = feedgate(&["check-config", "--config", all.to_str().unwrap()]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    assert!(text(&checked.stdout).contains("feeds.example.org"));
}

/// Everything that an operator starts reads one configuration: what the unit or a shell of the compose file
/// set alone would be unknown to `feedgate token create`.
#[test]
fn the_service_and_the_commands_read_one_configuration() {
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging");
    let read = |file| fs::read_to_string(packaging.join(file)).unwrap();
    let unit = read("systemd/feedgate.service");
    let environment = unit.lines().find(|line| line.starts_with("Environment"));
    assert_eq!(environment, None, "the unit sets what commands do not know");
    let settings: toml::Table = read("feedgate.toml").parse().unwrap();
    assert_eq!(settings["database"].as_str(), Some("sqlite:/var/lib/feedgate"));
    assert!(unit.contains("StateDirectory=feedgate\n"), "{unit}");
    let compose = read("compose/compose.yaml");
    assert!(!compose.contains("export "), "a command in the container does not know it: {compose}");
    assert!(compose.contains("FEEDGATE_DATABASE: "), "{compose}");
}

#[test]
fn the_first_start_of_the_compose_file_makes_the_key_for_secrets_once() {
    let compose = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/compose/compose.yaml");
    let compose = fs::read_to_string(compose).unwrap();
    let (_, rest) = compose.split_once("    command:\n      - |\n").unwrap();
    let lines = rest.lines().take_while(|line| line.starts_with("        "));
    let script = lines.map(|line| format!("{}\n", line.trim())).collect::<String>();
    let folder = tempfile::tempdir().unwrap();
    let script = script.replace("/data", folder.path().to_str().unwrap());
    let script = script.replace("exec feedgate serve", "exec true");
    let key = folder.path().join("secrets.key");
    let start = || {
        let done = Command::new("/bin/sh").args(["-euc", &script]).output().unwrap();
        assert!(done.status.success(), "{script}{}", text(&done.stderr));
        fs::read_to_string(&key).unwrap()
    };
    let made = start();
    assert_eq!(start(), made, "the second start keeps it");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let mut check = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    check.arg("check-config").env_clear().current_dir(folder.path());
    let checked = check.env("FEEDGATE_SECRETS_KEY_FILE", &key).output().unwrap();
    assert!(checked.status.success(), "{}", text(&checked.stderr));
}
