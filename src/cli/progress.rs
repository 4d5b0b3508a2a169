//! A progress bar on standard error. Where that is no terminal, nothing is shown.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The progress of a command.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Shows how many of these bytes have been read; of an unknown number if it is 0.
    pub(crate) fn of_bytes(bytes: u64) -> Progress {
        let template = match bytes {
            0 => "{spinner} {bytes} {elapsed}",
            _ => "{bar:40.cyan} {bytes}/{total_bytes} {eta}",
        };
        Progress::new(bytes, template)
    }

    /// Shows how many of these things are done.
    pub(crate) fn of_items(count: u64) -> Progress {
        Progress::new(count, "{bar:40.cyan} {pos}/{len} {eta} {msg}")
    }

    fn new(length: u64, template: &str) -> Progress {
        // Drawn at most five times a second; hidden if standard error is no terminal.
        let bar =
            ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr_with_hz(5));
        let style = ProgressStyle::with_template(template);
        Progress(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
    }

    /// Shows the position in the task with this name.
    pub(crate) fn set(&self, name: &'static str, position: u64, of: u64) {
        self.0.set_length(of);
        self.0.set_position(position);
        self.0.set_message(name);
    }

    /// Returns whether the bar is shown.
    pub(crate) fn is_visible(&self) -> bool {
        !self.0.is_hidden()
    }

    /// Adds what was done since the last call.
    pub(crate) fn add(&self, count: u64) {
        self.0.inc(count);
    }

    /// Removes the bar, so that what follows is printed in its place.
    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
