//! The log and the notices of a gateway that runs: written by a thread of their own, so that nobody who
//! reads them too slowly, or not any more, can stop the gateway.
//!
//! What always holds: logging never waits and never fails. Lines that find the queue full are lost, and
//! the log says how many were, once it is read again. A log that cannot be written is not written.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::cli::terminal::escaped_formats;

/// The most lines in the queue: some megabytes.
const QUEUE: usize = 8_192;
/// How long the end of the program waits until the queue is written.
const LAST_LINES: Duration = Duration::from_secs(1);

/// What the thread does next.
enum Task {
    /// Writes lines to standard error.
    Log(Vec<u8>),
    /// Writes lines to standard output.
    Notice(String),
    /// Tells that all tasks before are done.
    Flush(SyncSender<()>),
}

/// The output. Clones share it.
#[derive(Clone, Debug)]
pub(in crate::cli) struct LogOutput {
    queue: SyncSender<Task>,
    lost: Arc<AtomicU64>,
}

impl LogOutput {
    /// Starts the thread.
    pub(super) fn start() -> io::Result<LogOutput> {
        let (queue, tasks) = sync_channel(QUEUE);
        let lost = Arc::new(AtomicU64::new(0));
        let not_written = Arc::clone(&lost);
        thread::Builder::new().name("log".to_owned()).spawn(move || write(&tasks, &not_written))?;
        Ok(LogOutput { queue, lost })
    }

    /// Prints a notice to standard output.
    pub(super) fn print(&self, text: &str) {
        self.add(Task::Notice(text.to_owned()));
    }

    /// Prints the reason for which the gateway ends to standard error.
    pub(super) fn print_error(&self, text: &str) {
        self.add(Task::Log(format!("{text}\n").into_bytes()));
    }

    /// Waits until what was logged before is written, or a moment if it cannot be.
    pub(in crate::cli) fn flush(&self) {
        let (done, written) = sync_channel(1);
        if self.queue.try_send(Task::Flush(done)).is_ok() {
            written.recv_timeout(LAST_LINES).unwrap_or_default();
        }
    }

    fn add(&self, task: Task) {
        if self.queue.try_send(task).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Takes the lines of one event.
impl Write for LogOutput {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.add(Task::Log(lines.to_vec()));
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write(tasks: &Receiver<Task>, lost: &AtomicU64) {
    for task in tasks {
        let count = lost.swap(0, Ordering::Relaxed);
        if count > 0 {
            let note =
                format!("feedgate: {count} lines of the log were lost, because it was not read\n");
            io::stderr().write_all(note.as_bytes()).unwrap_or_default();
        }
        match task {
            Task::Log(lines) => {
                let lines = String::from_utf8_lossy(&lines);
                io::stderr().write_all(escaped_formats(&lines).as_bytes()).unwrap_or_default();
            }
            Task::Notice(text) => crate::cli::print_line(text),
            Task::Flush(done) => done.try_send(()).unwrap_or_default(),
        }
    }
}
