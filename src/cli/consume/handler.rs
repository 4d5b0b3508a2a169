//! Handing entries over: to a command, or to standard output.

use std::io::{self, Write};
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::domain::feed::{Entry, Feed};
use crate::render;

use super::Format;
use super::walk::{Stopped, Take};

/// Takes entries.
#[derive(Debug)]
pub(super) struct Handler {
    command: Option<String>,
    format: Format,
}

impl Handler {
    /// Runs `command` for each entry; without one, prints them.
    pub(super) fn new(command: Option<String>, format: Format) -> Handler {
        Handler { command, format }
    }

    fn text(&self, entry: &Entry) -> String {
        match self.format {
            Format::Atom => render::atom::entry(entry),
            Format::Json => {
                let feed = Feed { entries: vec![entry.clone()], ..Feed::default() };
                render::json::whole(&feed)["items"][0].to_string()
            }
        }
    }
}

impl Take for Handler {
    async fn take(&self, entry: &Entry) -> Result<(), Stopped> {
        let text = self.text(entry);
        let taken = match &self.command {
            Some(command) => run(command, &entry.id, &text).await,
            None => print(&text).map_err(|err| err.to_string()),
        };
        taken.map_err(|reason| Stopped::NotTaken { id: entry.id.clone(), reason })
    }
}

/// Unlike the answers of other commands, an entry that nobody reads is not taken.
fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", text.trim_end())?;
    out.flush()
}

async fn run(command: &str, id: &str, text: &str) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).env("FEEDGATE_ENTRY_ID", id).stdin(Stdio::piped());
    let mut child = shell.spawn().map_err(|err| format!("cannot run sh: {err}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command need not read what it is given; how it ends is what counts.
        let given = stdin.write_all(text.as_bytes()).await;
        drop(stdin);
        if let Err(err) = given
            && err.kind() != io::ErrorKind::BrokenPipe
        {
            return Err(format!("the command cannot be told: {err}"));
        }
    }
    let status = child.wait().await.map_err(|err| err.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("the command ended with {status}")) }
}
