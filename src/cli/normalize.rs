//! `feedgate normalize`: bytes in, one document out; no network, no store.

mod batch;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{error, fs};

use url::Url;

use feedgate_feed::Context;
use feedgate_feed::explain;
use feedgate_feed::normalize;

use super::{Outcome, print_line};

/// Turn any feed into Atom or JSON, reading a file and using neither network nor store.
#[derive(Debug, clap::Args)]
pub(super) struct NormalizeArgs {
    /// The document. - is standard input, as is none if something is piped into it.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Where the document came from; relative addresses in it are relative to this.
    #[arg(long, value_name = "URL", default_value = "http://localhost/")]
    url: Url,
    /// Its Content-Type as received.
    #[arg(long, value_name = "TYPE", default_value = "")]
    content_type: String,
    /// All response headers: a JSON object of names and values.
    #[arg(long, value_name = "FILE.json")]
    headers: Option<PathBuf>,
    /// What to write.
    #[arg(long, value_enum, default_value = "atom")]
    format: Format,
    /// Write instead, as JSON, where each field came from and what was mended.
    #[arg(long)]
    explain: bool,
    /// Guess the language of entries that declare none.
    #[arg(long)]
    detect_language: bool,
    /// Normalize many documents: lines of {"file","url","content_type","headers","out"}.
    #[arg(long, value_name = "MANIFEST.jsonl", requires = "out", conflicts_with = "file")]
    batch: Option<PathBuf>,
    /// The folder for what --batch writes.
    #[arg(long, value_name = "DIR", requires = "batch")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    Atom,
    Json,
}

pub(super) fn run(args: &NormalizeArgs) -> Outcome {
    if let (Some(manifest), Some(folder)) = (&args.batch, &args.out) {
        return batch::run(manifest, folder, args);
    }
    let bytes = match args.file.as_deref() {
        Some(path) if path != Path::new("-") => read(path)?,
        None if io::stdin().is_terminal() => {
            return Err("which document? Name its FILE, or pipe it in".into());
        }
        _ => {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes)?;
            bytes
        }
    };
    let headers = match &args.headers {
        Some(path) => serde_json::from_slice(&read(path)?)
            .map_err(|err| format!("{}: not an object of headers: {err}", path.display()))?,
        None => BTreeMap::new(),
    };
    let context = context(args.url.clone(), &args.content_type, headers);
    let written = written(&bytes, &context, args)?;
    print_line(written.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// What the options ask for, of one document.
fn written(
    bytes: &[u8],
    context: &Context,
    args: &NormalizeArgs,
) -> Result<String, Box<dyn error::Error>> {
    if args.explain {
        let mut explained = explain(bytes, context)?;
        if args.detect_language {
            explained.detect_languages();
        }
        return Ok(serde_json::to_string_pretty(&explained.to_json())? + "\n");
    }
    let mut normalized = normalize(bytes, context)?;
    if args.detect_language {
        normalized.detect_languages();
    }
    match args.format {
        Format::Json => Ok(serde_json::to_string_pretty(&normalized.to_json())? + "\n"),
        Format::Atom => Ok(normalized.to_atom()),
    }
}

/// What is known of a document. A content type that is given by itself counts more
/// than one among the headers.
fn context(url: Url, content_type: &str, headers: BTreeMap<String, String>) -> Context {
    let mut context = Context::new(url);
    if !content_type.is_empty() {
        context.headers.push(("content-type".to_owned(), content_type.to_owned()));
    }
    let lower = headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value));
    context.headers.extend(lower);
    context
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|err| format!("{}: {err}", path.display()))
}
