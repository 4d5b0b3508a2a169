//! How far a command that takes long has come, on standard error: a bar with the rate and the time left on a
//! terminal, and elsewhere, as in a log, a line from time to time.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::print_note;

/// The least time between two lines.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// The progress of a command.
pub(crate) struct Progress {
    bar: ProgressBar,
    unit: Unit,
    task: Mutex<Task>,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Bytes,
    Items,
}

/// What a command does at the moment.
struct Task {
    name: &'static str,
    begun_at: Instant,
    /// The position at which it began.
    from: u64,
    printed_at: Instant,
}

impl Progress {
    /// Shows how many of these bytes are done; of an unknown number if it is 0.
    pub(crate) fn of_bytes(bytes: u64) -> Progress {
        let template = match bytes {
            0 => "{spinner} {bytes} {bytes_per_sec} {elapsed}",
            _ => "{bar:40.cyan} {bytes}/{total_bytes} {bytes_per_sec} {eta} left",
        };
        Progress::new(Unit::Bytes, bytes, template)
    }

    /// Shows how many of these things are done.
    pub(crate) fn of_items(count: u64) -> Progress {
        let template = "{bar:40.cyan} {human_pos}/{human_len} {per_sec} {eta} left {msg}";
        Progress::new(Unit::Items, count, template)
    }

    fn new(unit: Unit, length: u64, template: &str) -> Progress {
        // Drawn at most five times a second; hidden if standard error is no terminal.
        let bar =
            ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr_with_hz(5));
        let style = ProgressStyle::with_template(template);
        let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let now = Instant::now();
        let task = Mutex::new(Task { name: "", begun_at: now, from: 0, printed_at: now });
        Progress { bar, unit, task }
    }

    /// Shows the position in the task with this name.
    pub(crate) fn set(&self, name: &'static str, position: u64, of: u64) {
        self.bar.set_length(of);
        self.bar.set_position(position);
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.name != name {
            self.bar.set_message(name);
            self.bar.reset_eta();
            (task.name, task.begun_at, task.from) = (name, Instant::now(), position);
        }
        drop(task);
        self.print_line();
    }

    /// Returns whether the bar is shown.
    pub(crate) fn is_visible(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Adds what was done since the last call.
    pub(crate) fn add(&self, count: u64) {
        self.bar.inc(count);
        self.print_line();
    }

    /// Removes the bar, so that what follows is printed in its place.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Prints a line where no bar is shown, if the last one is long ago.
    fn print_line(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_visible() || task.printed_at.elapsed() < LINE_INTERVAL {
            return;
        }
        task.printed_at = Instant::now();
        let (position, of) = (self.bar.position(), self.bar.length().unwrap_or_default());
        let elapsed = task.begun_at.elapsed().as_secs_f64();
        let rate = position.saturating_sub(task.from) as f64 / elapsed.max(0.001);
        print_note(line(self.unit, task.name, (position, of), rate));
    }
}

/// Says how far a task has come. `rate` is in bytes or things a second.
fn line(unit: Unit, name: &str, (position, of): (u64, u64), rate: f64) -> String {
    let count = |count: u64| match unit {
        Unit::Bytes => HumanBytes(count).to_string(),
        Unit::Items => count.to_string(),
    };
    let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
    let done =
        format!("{name}{} of {}, {} a second", count(position), count(of), count(rate as u64));
    match of {
        0 => format!("{name}{}, {} a second", count(position), count(rate as u64)),
        of if rate >= 1.0 => {
            let left = Duration::from_secs_f64(of.saturating_sub(position) as f64 / rate);
            format!("{done}, {} left", HumanDuration(left))
        }
        _ => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_rate_and_the_time_left() {
        #[rustfmt::skip]
        let cases = [
            (Unit::Items, "records", (4_000, 10_000),  50.0,      "records: 4000 of 10000, 50 a second, 2 minutes left"),
            (Unit::Items, "records", (0, 10),          0.0,       "records: 0 of 10, 0 a second"),
            (Unit::Bytes, "",        (1 << 20, 3 << 20), 1_048_576.0, "1.00 MiB of 3.00 MiB, 1.00 MiB a second, 2 seconds left"),
            (Unit::Bytes, "",        (2_048, 0),       1_024.0,   "2.00 KiB, 1.00 KiB a second"),
        ];
        for (unit, name, position, rate, want) in cases {
            assert_eq!(line(unit, name, position, rate), want);
        }
    }
}
