//! Normalizes many documents in one process.
//!
//! What always holds: no document prevents the others from being written. For a document that
//! cannot be normalized, a file with the reason is written instead of the output, under the same
//! name with `.err` appended. The summary counts the failures by reason.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Deserialize;
use url::Url;

use super::super::progress::Progress;
use super::super::{Outcome, print_line};
use super::{NormalizeArgs, WrittenDocument, context, read, written};

/// One line of the manifest.
#[derive(Debug, Deserialize)]
struct Job {
    /// Absolute, or relative to the current folder, else to that of the manifest.
    file: PathBuf,
    url: String,
    #[serde(default)]
    content_type: Option<String>,
    #[serde(default)]
    headers: Option<BTreeMap<String, String>>,
    /// Absolute, or relative to the folder of the output, whose name it may begin with.
    out: PathBuf,
}

/// Normalizes every document of `manifest`. An invalid line of the manifest ends the command.
pub(super) fn run(manifest: &Path, folder: &Path, args: &NormalizeArgs) -> Outcome {
    let text = match manifest == Path::new("-") {
        true => io::read_to_string(io::stdin().lock()),
        false => fs::read_to_string(manifest),
    };
    let text = text.map_err(|err| format!("{}: {err}", manifest.display()))?;
    fs::create_dir_all(folder)?;
    let (mut done, mut failures) = (0, BTreeMap::<String, usize>::new());
    let progress = Progress::of_items(text.lines().count() as u64);
    for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let job: Job = serde_json::from_str(line)
            .map_err(|err| format!("{}:{}: {err}", manifest.display(), n + 1))?;
        let out = output_path(&job.out, folder);
        if let Some(around) = out.parent() {
            fs::create_dir_all(around)?;
        }
        progress.add(1);
        match normalized(&job, manifest, args) {
            Ok(document) => {
                fs::write(&out, document.text)?;
                done += 1;
            }
            Err(why) => {
                let mut name = out.into_os_string();
                name.push(".err");
                fs::write(name, format!("{why}\n"))?;
                // What follows the colon is about this document alone.
                let reason = why.split(": ").next().unwrap_or_default().to_owned();
                *failures.entry(reason).or_default() += 1;
            }
        }
    }
    progress.finish();
    let failed: usize = failures.values().sum();
    print_line(format!("{done} normalized, {failed} failed"));
    let mut failures: Vec<(String, usize)> = failures.into_iter().collect();
    failures.sort_by_key(|(_, count)| Reverse(*count));
    for (reason, count) in failures {
        print_line(format!("{count:>8} {reason}"));
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns where a document is.
fn input_path(file: &Path, manifest: &Path) -> PathBuf {
    match manifest.parent() {
        Some(folder) if file.is_relative() && !file.exists() => folder.join(file),
        _ => file.to_owned(),
    }
}

/// Returns where the output of a document is written.
fn output_path(out: &Path, folder: &Path) -> PathBuf {
    if out.starts_with(folder) { out.to_owned() } else { folder.join(out) }
}

/// Normalizes one document. A panic is a bug, but it must not prevent the other documents from being
/// written.
fn normalized(job: &Job, manifest: &Path, args: &NormalizeArgs) -> Result<WrittenDocument, String> {
    let bytes = read(&input_path(&job.file, manifest))?;
    let content_type = job.content_type.as_deref().unwrap_or_default();
    let url = Url::parse(&job.url).map_err(|err| format!("{}: {err}", job.url))?;
    let context = context(url, content_type, job.headers.clone().unwrap_or_default());
    catch_unwind(|| written(&bytes, &context, args).map_err(|err| err.to_string()))
        .unwrap_or_else(|_| Err("internal error: the normalizer panicked".to_owned()))
}
