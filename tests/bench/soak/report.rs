//! The table of a run: a line for each minute.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::AnyError;
use super::program::Program;
use super::traffic::Traffic;

/// What was measured until the last line.
pub(crate) struct Report {
    traffic: Arc<Traffic>,
    gateway: Arc<Program>,
    folder: PathBuf,
    begun: Instant,
    last: Instant,
    published: u64,
    received: u64,
    cpu: f64,
}

impl Report {
    /// Prints the head of the table. `folder` is where a SQLite database grows.
    pub(crate) fn new(traffic: Arc<Traffic>, gateway: Arc<Program>, folder: &Path) -> Report {
        println!(
            "| minute | entries/s in | notifications/s out | delay ms, median | 99 % | longest \
             | waiting | memory MiB | cores | SQLite MiB |"
        );
        println!("|{}", " ---: |".repeat(10));
        let (begun, cpu) = (Instant::now(), gateway.cpu().unwrap_or_default());
        let (published, received) = (traffic.published(), traffic.received());
        traffic.take_delays();
        let folder = folder.to_owned();
        Report { traffic, gateway, folder, begun, last: begun, published, received, cpu }
    }

    /// Prints what happened since the last line.
    pub(crate) fn line(&mut self) -> Result<(), AnyError> {
        let seconds = self.last.elapsed().as_secs_f64();
        let (published, received) = (self.traffic.published(), self.traffic.received());
        let cpu = self.gateway.cpu()?;
        let delays = self.traffic.take_delays();
        println!(
            "| {:.0} | {:.0} | {:.0} | {} | {} | {} | {} | {:.0} | {:.2} | {:.0} |",
            self.begun.elapsed().as_secs_f64() / 60.0,
            (published - self.published) as f64 / seconds,
            (received - self.received) as f64 / seconds,
            delays.percentile(50),
            delays.percentile(99),
            delays.percentile(100),
            self.traffic.undelivered(),
            self.gateway.memory_mib("VmRSS")?,
            (cpu - self.cpu) / seconds,
            size(&self.folder)? / (1_024.0 * 1_024.0),
        );
        (self.last, self.published, self.received, self.cpu) =
            (Instant::now(), published, received, cpu);
        Ok(())
    }
}

/// The bytes of the files in a folder.
fn size(folder: &Path) -> Result<f64, AnyError> {
    let mut bytes = 0;
    for file in std::fs::read_dir(folder)? {
        bytes += file?.metadata()?.len();
    }
    Ok(bytes as f64)
}
