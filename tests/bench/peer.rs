//! The asking side of a contender: a child process that is told when to begin.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::{env, time::Duration};

use super::documents;

/// A contender and what it has answered so far.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// What one reading of all documents took, round by round.
    pub(crate) rounds: Vec<Duration>,
    /// The entries it found.
    pub(crate) entries: u32,
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// All contenders that can run here; feedgate is the first, and its parser alone the second.
pub(crate) fn all() -> Result<Vec<Peer>, Box<dyn Error>> {
    let mut peers = Vec::new();
    for name in ["feedgate", "feedgate, parsing", "feed-rs", "scan"] {
        let mut command = Command::new(env::current_exe()?);
        command.args(["contend", name]);
        peers.push(Peer::start(name, command)?);
    }
    let python = env::var_os("FEEDGATE_BENCH_PYTHON").unwrap_or_else(|| "python3".into());
    for name in ["fastfeedparser", "feedparser"] {
        let mut probe = Command::new(&python);
        probe.args(["-c", &format!("import {name}")]).stderr(Stdio::null());
        if probe.status().is_ok_and(|status| status.success()) {
            let mut command = Command::new(&python);
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench/by_python.py");
            command.arg(script).arg(name).args(documents::paths()?);
            peers.push(Peer::start(name, command)?);
        } else {
            eprintln!("{python:?} cannot import {name}: it is left out");
        }
    }
    Ok(peers)
}

impl Peer {
    fn start(name: &'static str, mut command: Command) -> io::Result<Peer> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let missing = || io::Error::other("a pipe is missing");
        let questions = child.stdin.take().ok_or_else(missing)?;
        let answers = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        Ok(Peer { name, rounds: Vec::new(), entries: 0, child, questions, answers })
    }

    /// Has it read all documents once.
    pub(crate) fn ask(&mut self, counts: bool) -> Result<(), Box<dyn Error>> {
        self.questions.write_all(b"\n")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        let died = || format!("{} gave up", self.name);
        let (nanoseconds, entries) = answer.trim().split_once(' ').ok_or_else(died)?;
        if counts {
            self.rounds.push(Duration::from_nanos(nanoseconds.parse()?));
        }
        self.entries = entries.parse()?;
        Ok(())
    }

    /// Its shortest round.
    pub(crate) fn best(&self) -> Duration {
        self.rounds.iter().min().copied().unwrap_or_default()
    }

    /// The round in the middle.
    pub(crate) fn median(&self) -> Duration {
        let mut rounds = self.rounds.clone();
        rounds.sort();
        rounds.get(rounds.len() / 2).copied().unwrap_or_default()
    }
}

impl Drop for Peer {
    /// A contender ends with its input; should it be busy, it is not waited for.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
