//! `feedgate export`: writes the state of a gateway as lines of JSON.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::ExitCode;

use feedgate_store as store;

use super::{Outcome, SettingsArgs, help, print_database, print_note};

/// Export resources, entries, subscriptions with their cursors, accounts and collections as lines of
/// JSON, for "feedgate import". No gateway may use the database: export a backup of a running one.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::EXPORT.text())]
pub(super) struct ExportArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// The new file, which only its owner can read; "-" is standard output.
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// Include the secrets of subscriptions. Without them, these are paused in the new gateway until
    /// they have a secret again.
    #[arg(long)]
    with_secrets: bool,
}

pub(super) async fn run(args: ExportArgs) -> Outcome {
    let (config, _) = args.settings.load(&[])?;
    let settings = config.store();
    print_database(&settings.url);
    let file: Box<dyn Write + Send> = if args.file.as_os_str() == "-" {
        Box::new(io::stdout())
    } else {
        let mut options = OpenOptions::new();
        let created = options.write(true).create_new(true).mode(0o600).open(&args.file);
        Box::new(created.map_err(|err| format!("cannot create {}: {err}", args.file.display()))?)
    };
    let mut file = BufWriter::new(file);
    let mut write = |line: &str| writeln!(file, "{line}");
    let exported = store::export(&settings, args.with_secrets, &mut write).await?;
    file.flush()?;
    for (kind, lines) in exported.kinds.iter().filter(|(_, lines)| *lines > 0) {
        print_note(format!("{kind}: {lines} lines"));
    }
    if exported.secrets_left_out > 0 {
        let count = exported.secrets_left_out;
        print_note(format!("{count} secrets were left out; --with-secrets includes them"));
    }
    Ok(ExitCode::SUCCESS)
}
