//! A program of the page that runs on, and what it prints.

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};
use tokio::time::timeout;

use super::page::Language;
use crate::support::PATIENCE;

pub(super) struct Program {
    name: String,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    printed: Vec<String>,
}

impl Program {
    /// Starts the program that a command of the page runs.
    pub(super) fn start(language: &Language, command: &str) -> Program {
        let mut child = language.command(&format!("exec {command}")).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let name = format!("{}: {command}", language.name);
        Program { name, child, lines, printed: Vec::new() }
    }

    /// Waits until it prints a line with one of these texts.
    pub(super) async fn prints(&mut self, texts: &[&str]) {
        let find = async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                let is_found = texts.iter().any(|text| line.contains(text));
                self.printed.push(line);
                if is_found {
                    return true;
                }
            }
            false
        };
        let found = timeout(PATIENCE, find).await;
        assert_eq!(found, Ok(true), "{} did not print {texts:?}: {:#?}", self.name, self.printed);
    }

    /// The lines that it printed for items.
    pub(super) fn items(&self) -> Vec<String> {
        let items =
            self.printed.iter().filter_map(|line| line.find("received ").map(|at| &line[at..]));
        items.map(str::to_owned).collect()
    }

    /// Ends it, as a crash does.
    pub(super) async fn stop(&mut self) {
        self.child.kill().await.unwrap();
    }
}

/// A variable that the test runner sets.
pub(super) fn variable(name: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "it is the test runner that sets it")]
    let value = std::env::var(name);
    value.unwrap_or_else(|_| panic!("tests/run installs packages and sets {name}"))
}
