//! Normalizes several documents, and writes a line of JSON for each.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

use feedgate_feed::Context;

use super::super::{Outcome, print_line};
use super::{Format, NormalizeArgs, read, written};

/// Writes a line for each document. No document prevents the others from being written.
pub(super) fn run(context: &Context, args: &NormalizeArgs) -> Outcome {
    let stdin = [PathBuf::from("-")];
    let files = if args.files.is_empty() { &stdin } else { &args.files[..] };
    let mut has_failed = false;
    for file in files {
        let line = match normalized(file, context, args) {
            Ok((name, document)) => json!({ "file": file.display().to_string(), name: document }),
            Err(reason) => {
                has_failed = true;
                json!({ "file": file.display().to_string(), "error": reason })
            }
        };
        print_line(line.to_string());
    }
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns a document, and the name of the field for it.
fn normalized(
    file: &Path,
    context: &Context,
    args: &NormalizeArgs,
) -> Result<(&'static str, Value), String> {
    let bytes = read(file)?;
    let written = catch_unwind(|| written(&bytes, context, args).map_err(|err| err.to_string()));
    let text =
        written.unwrap_or_else(|_| Err("internal error: the normalizer panicked".to_owned()))?.text;
    let parsed = |text: &str| serde_json::from_str(text).map_err(|err| err.to_string());
    Ok(match (args.explain, args.format) {
        (true, _) => ("explained", parsed(&text)?),
        (false, Format::Json) => ("feed", parsed(&text)?),
        (false, Format::Atom) => ("atom", Value::String(text)),
    })
}
