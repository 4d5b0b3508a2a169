//! `feedgate export`: writes the state of a gateway as lines of JSON.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use feedgate_store::{self as store, CopyProgress, ExportSummary, StoreSettings};

use super::new_file::NewFile;
use super::progress::Progress;
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
    let (config, sources) = args.settings.load(&[])?;
    let settings = config.store();
    print_database(&config, &sources);
    let is_stdout = args.file.as_os_str() == "-";
    let bar = Progress::of_items(0);
    // A bar and lines on one terminal would garble each other.
    let has_bar = !(is_stdout && io::stdout().is_terminal());
    let mut report = |progress: &CopyProgress| {
        if has_bar {
            bar.set(progress.table, progress.rows, progress.of);
        }
    };
    let exported = if is_stdout {
        write(&settings, args.with_secrets, io::stdout(), &mut report).await?.0
    } else {
        let new = NewFile::create(&args.file).map_err(|err| cannot_create(&args.file, &err))?;
        let (exported, file) = write(&settings, args.with_secrets, new, &mut report).await?;
        file.persist().map_err(|err| cannot_create(&args.file, &err))?;
        exported
    };
    bar.finish();
    for (kind, lines) in exported.kinds.iter().filter(|(_, lines)| *lines > 0) {
        print_note(format!("{kind}: {lines} lines"));
    }
    if exported.secrets_left_out > 0 {
        let count = exported.secrets_left_out;
        print_note(format!("{count} secrets were left out; --with-secrets includes them"));
    }
    Ok(ExitCode::SUCCESS)
}

async fn write<W: Write + Send>(
    settings: &StoreSettings,
    with_secrets: bool,
    output: W,
    report: &mut (dyn FnMut(&CopyProgress) + Send),
) -> Result<(ExportSummary, W), Box<dyn std::error::Error>> {
    let mut file = BufWriter::new(output);
    let mut write = |line: &str| writeln!(file, "{line}");
    let exported = store::export(settings, with_secrets, &mut write, report).await?;
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok((exported, file))
}

fn cannot_create(file: &Path, err: &io::Error) -> String {
    format!("cannot create {}: {err}", file.display())
}
