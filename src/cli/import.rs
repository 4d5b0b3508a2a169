//! `feedgate import`: reads what `feedgate export` has written.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::ExitCode;

use feedgate_store::{ImportReport, Importer};
use serde_json::{Value, json};

use super::progress::Progress;
use super::{Outcome, SettingsArgs, help, print_database, print_line, print_note};
use crate::jobs::runner;

/// Import an export into a database, which is created if it is missing, and may be in use. What is there
/// already stays as it is, so that an import can be repeated.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::IMPORT.text())]
pub(super) struct ImportArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// The file; "-" is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: ImportArgs) -> Outcome {
    let (config, sources) = args.settings.load(&[])?;
    let settings = config.store();
    let (file, bytes): (Box<dyn BufRead>, u64) = if args.file.as_os_str() == "-" {
        (Box::new(BufReader::new(io::stdin())), 0)
    } else {
        let opened = File::open(&args.file);
        let opened = opened.map_err(|err| format!("cannot open {}: {err}", args.file.display()))?;
        let bytes = opened.metadata()?.len();
        (Box::new(BufReader::new(opened)), bytes)
    };
    let mut lines = (1..).zip(file.lines());
    let header = lines.next().map(|(_, line)| line).transpose()?.unwrap_or_default();
    print_database(&config, &sources);
    let mut importer = Importer::begin(&settings, &header, runner::now()).await?;
    let progress = Progress::of_bytes(bytes);
    for (number, line) in lines {
        let line = line?;
        importer.add_line(number, &line).await?;
        progress.add(line.len() as u64 + 1);
    }
    let report = importer.finish().await?;
    progress.finish();
    match args.json {
        true => print_line(as_json(&report).to_string()),
        false => print_report(&report),
    }
    let is_complete = report.kinds.iter().all(|(_, counts)| counts.refused == 0);
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_report(report: &ImportReport) {
    for (kind, counts) in &report.kinds {
        print_line(format!(
            "{kind}: {} added, {} already there, {} refused",
            counts.added, counts.present, counts.refused
        ));
    }
    for (line, reason) in &report.refused {
        print_line(format!("line {line} was refused: {reason}"));
    }
    if report.paused > 0 {
        let count = report.paused;
        print_note(format!(
            "{count} subscriptions whose secrets are not in the file are paused: give them a secret, \
             and resume them"
        ));
    }
}

fn as_json(report: &ImportReport) -> Value {
    let kinds = report.kinds.iter().map(|(kind, counts)| {
        let counts = json!({
            "added": counts.added, "present": counts.present, "refused": counts.refused,
        });
        (kind.clone(), counts)
    });
    let refused =
        report.refused.iter().map(|(line, reason)| json!({ "line": line, "reason": reason }));
    json!({
        "kinds": Value::Object(kinds.collect()),
        "refused": refused.collect::<Vec<_>>(),
        "paused": report.paused,
    })
}
