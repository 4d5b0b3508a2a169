//! What `docs/quickstart.md` says: the programs and the commands of each language.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use tempfile::TempDir;
use tokio::process::Command;

use super::program::variable;
use crate::support::pages::{blocks, read};
use crate::support::ports::free_port;
use crate::support::world::World;

/// What the programs of the page read from the environment.
const VARIABLES: [&str; 4] = ["GATE", "FEED", "SECRET", "TOKEN"];

/// A language of the page: its programs in a folder, and the commands that compile and run them.
pub(super) struct Language {
    pub(super) name: String,
    pub(super) folder: TempDir,
    pub(super) environment: Vec<(&'static str, String)>,
    /// The port of the receiver, instead of 3000.
    port: u16,
    preparations: Vec<String>,
    pub(super) receiver: String,
    pub(super) stream: String,
}

impl Language {
    /// The URL of the receiver.
    pub(super) fn callback(&self) -> String {
        format!("http://127.0.0.1:{}/webhook", self.port)
    }

    /// Returns a command of the page, run in the folder of the programs.
    pub(super) fn command(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        let python = PathBuf::from(variable("FEEDGATE_TEST_PYTHON"));
        let paths = std::env::var_os("PATH").unwrap();
        let paths =
            [python.parent().unwrap().to_owned()].into_iter().chain(std::env::split_paths(&paths));
        command
            .args(["-euc", &format!("{line} 2>&1")])
            .current_dir(self.folder.path())
            .envs(self.environment.iter().cloned())
            .env("CALLBACK", self.callback())
            .env("PATH", std::env::join_paths(paths).unwrap())
            .env("PYTHONUNBUFFERED", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs the commands that make a client and compile the programs.
    pub(super) async fn prepare(&self) {
        for line in &self.preparations {
            let ended = self.command(line).output().await.unwrap();
            let printed = String::from_utf8_lossy(&ended.stdout);
            assert!(ended.status.success(), "{}: {line}\n{printed}", self.name);
        }
    }

    fn from_section(section: &str, environment: &[(&'static str, String)]) -> Language {
        let port = free_port();
        let section = section.replace("3000", &port.to_string());
        let (name, _) = section.split_once('\n').unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut commands = Vec::new();
        for (fence, block) in blocks(&section) {
            if fence == "console" {
                commands.extend(commands_of(&block).filter(|line| package_list(line).is_none()));
                continue;
            }
            fs::write(folder.path().join(file_name(&block)), block).unwrap();
        }
        let [preparations @ .., receiver, stream] = commands.as_slice() else {
            panic!("{name} has no commands")
        };
        if let Some((file, program)) = verifying_functions(name) {
            fs::write(folder.path().join(file), program).unwrap();
        }
        let modules = folder.path().join("node_modules");
        std::os::unix::fs::symlink(variable("FEEDGATE_TEST_NODE_MODULES"), modules).unwrap();
        Language {
            name: name.to_owned(),
            environment: environment.to_vec(),
            port,
            preparations: preparations.to_vec(),
            receiver: receiver.clone(),
            stream: stream.clone(),
            folder,
        }
    }
}

/// Writes the programs of each language into a folder of its own. The first block of the page sets their
/// variables.
pub(super) async fn languages(world: &World) -> Vec<Language> {
    let page = read("docs/quickstart.md");
    let mut sections = page.split("\n## ");
    let introduction = sections.next().unwrap();
    let environment = environment(&blocks(introduction)[0].1, world).await;
    let languages: Vec<Language> =
        sections.map(|section| Language::from_section(section, &environment)).collect();
    assert_eq!(languages.len(), 5);
    languages
}

/// The program that installs packages, and the name of each of them.
pub(super) fn packages() -> Vec<(String, String)> {
    let page = read("docs/quickstart.md");
    let blocks = blocks(&page);
    let commands = blocks.iter().flat_map(|(_, block)| commands_of(block));
    let installed = commands.filter_map(|line| {
        let (program, names) = package_list(&line)?;
        let of_each = names.split(' ').map(|name| (program.to_owned(), name.to_owned()));
        Some(of_each.collect::<Vec<_>>())
    });
    installed.flatten().collect()
}

/// Returns what the programs read from the environment, as the commands of the page set it.
async fn environment(block: &str, world: &World) -> Vec<(&'static str, String)> {
    let block = block
        .replace("http://127.0.0.1:8080", &world.gateway.url(""))
        .replace("https://blog.rust-lang.org/feed.xml", &world.topic)
        .replace("feedgate token", &format!("{} token", env!("CARGO_BIN_EXE_feedgate")));
    let ended = Command::new("bash")
        .args(["-euc", &format!("{block}\nenv")])
        .env("FEEDGATE_DATABASE", &world.database.url)
        .stdin(Stdio::null())
        .output();
    let ended = ended.await.unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let printed = String::from_utf8(ended.stdout).unwrap();
    let set: HashMap<&str, &str> =
        printed.lines().filter_map(|line| line.split_once('=')).collect();
    VARIABLES.map(|name| (name, set[name].to_owned())).to_vec()
}

/// Returns the file that has the functions of `docs/api/signatures.md`, for languages whose programs
/// have no library that verifies.
fn verifying_functions(language: &str) -> Option<(&'static str, String)> {
    let (file, head) = match language {
        "Go" => ("verify.go", "package main\n\n"),
        "Ruby" => ("verify.rb", ""),
        "PHP" => ("verify.php", "<?php\n"),
        _ => return None,
    };
    let page = read("docs/api/signatures.md");
    let (_, section) = page.split_once(&format!("\n## {language}\n")).unwrap();
    Some((file, format!("{head}{}", blocks(section)[0].1)))
}

fn commands_of(block: &str) -> impl Iterator<Item = String> + '_ {
    block.lines().filter_map(|line| line.strip_prefix("$ ").map(str::to_owned))
}

/// Returns the program that installs packages, and their names.
fn package_list(line: &str) -> Option<(&str, &str)> {
    line.split_once(" install ")
}

/// Returns the name in the first line of a program, a comment.
fn file_name(program: &str) -> &str {
    let first = program.lines().next().unwrap();
    first.rsplit_once(' ').unwrap_or_else(|| panic!("{first} has no name of a file")).1
}
