//! `feedgate rotate-key`: encrypts the secrets in the database with the present key, while gateways
//! run.

use std::process::ExitCode;

use feedgate_store::{self as store, RotatedSecrets, RotationProgress};

use super::progress::Progress;
use super::{Outcome, SettingsArgs, help, print_database, print_line, print_note};

/// Encrypt all secrets in the database with FEEDGATE_SECRETS_KEY: those that are stored in clear, and
/// those that are encrypted with one of FEEDGATE_SECRETS_OLD_KEYS. Gateways may go on running.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::ROTATE_KEY.text())]
pub(super) struct RotateKeyArgs {
    #[command(flatten)]
    settings: SettingsArgs,
}

pub(super) async fn run(args: RotateKeyArgs) -> Outcome {
    let (config, sources) = args.settings.load(&[])?;
    let settings = config.store();
    print_database(&config, &sources);
    let bar = Progress::of_items(0);
    let mut report =
        |progress: &RotationProgress| bar.set(progress.column, progress.rows, progress.of);
    let rotated = store::rotate_secrets(&settings, &mut report).await;
    bar.finish();
    let rotated = rotated?.ok_or("set FEEDGATE_SECRETS_KEY to the key to encrypt with")?;
    print_line(format!(
        "{} secrets were encrypted with the key {}",
        rotated.rewritten, rotated.key_id
    ));
    print_problems(&rotated);
    if !rotated.is_complete() {
        return Ok(ExitCode::FAILURE);
    }
    print_line("no other key is needed any more");
    Ok(ExitCode::SUCCESS)
}

/// Prints why other keys may still be needed.
fn print_problems(rotated: &RotatedSecrets) {
    if rotated.late > 0 {
        print_note(format!(
            "{} of them were stored meanwhile by a gateway that does not have this \
             FEEDGATE_SECRETS_KEY: restart all gateways with it, and run this command again",
            rotated.late
        ));
    }
    if rotated.unreadable > 0 {
        print_note(format!(
            "{} secrets cannot be read, and were left as they are, such as:",
            rotated.unreadable
        ));
        rotated.unreadable_reasons.iter().for_each(print_note);
    }
}
