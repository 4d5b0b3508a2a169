//! Passes entries to a command, or prints them on standard output.

use std::io::{self, IsTerminal, Write};
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::Format;
use super::item::ArchiveItem;
use super::walk::{EntryHandler, Stopped};
use crate::cli::terminal::escaped;

/// Handles entries.
#[derive(Debug)]
pub(super) struct CommandHandler {
    command: Option<String>,
    format: Format,
}

impl CommandHandler {
    /// Runs `command` for each entry; without one, prints them.
    pub(super) fn new(command: Option<String>, format: Format) -> CommandHandler {
        CommandHandler { command, format }
    }

    fn text(&self, item: &ArchiveItem) -> String {
        match self.format {
            Format::Atom => item.atom(),
            Format::Json => item.json().to_string(),
        }
    }
}

impl EntryHandler for CommandHandler {
    async fn handle(&self, item: &ArchiveItem) -> Result<(), Stopped> {
        let text = self.text(item);
        let taken = match &self.command {
            Some(command) => run(command, item, &text).await,
            None => match print(&text) {
                Err(err) if err.kind() == io::ErrorKind::BrokenPipe => {
                    return Err(Stopped::OutputClosed(item.id().to_owned()));
                }
                printed => printed.map_err(|err| err.to_string()),
            },
        };
        taken.map_err(|reason| Stopped::NotTaken { id: item.id().to_owned(), reason })
    }
}

/// Prints an entry. Unlike the output of other commands, a failed write is an error, because an
/// entry that was not written is not handled.
fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.is_terminal() {
        true => writeln!(out, "{}", escaped(text.trim_end()))?,
        false => writeln!(out, "{}", text.trim_end())?,
    }
    out.flush()
}

async fn run(command: &str, item: &ArchiveItem, text: &str) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).env("FEEDGATE_ENTRY_ID", item.id()).stdin(Stdio::piped());
    match item.is_deleted() {
        true => shell.env("FEEDGATE_ENTRY_DELETED", "1"),
        false => shell.env_remove("FEEDGATE_ENTRY_DELETED"),
    };
    let mut child = shell.spawn().map_err(|err| format!("cannot run sh: {err}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command need not read its input; only its exit code counts.
        let given = stdin.write_all(text.as_bytes()).await;
        drop(stdin);
        if let Err(err) = given
            && err.kind() != io::ErrorKind::BrokenPipe
        {
            return Err(format!("cannot write to the command's standard input: {err}"));
        }
    }
    let status = child.wait().await.map_err(|err| err.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("the command failed: {status}")) }
}
