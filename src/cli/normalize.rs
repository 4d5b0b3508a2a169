//! `feedgate normalize`: converts a document to Atom or JSON, without network or store.

mod batch;
mod lines;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{error, fs};

use url::Url;

use feedgate_feed::documents::{self, Fragment, InvalidFragment};
use feedgate_feed::explain;
use feedgate_feed::normalize;
use feedgate_feed::repair;
use feedgate_feed::{Context, Normalized};

use super::{Outcome, help, print_bytes, print_note};

/// Convert a feed of any format to Atom or JSON. Neither the network nor a store is used.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::NORMALIZE.text())]
pub(super) struct NormalizeArgs {
    /// The document; - is standard input, which is also the default if it is a pipe or a file.
    /// Several need --ndjson.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The URL of the document, against which relative URLs are resolved. A mapping in its fragment reads
    /// JSON as a feed.
    #[arg(long, value_name = "URL", default_value = "http://localhost/")]
    url: Url,
    /// The Content-Type of the document as received.
    #[arg(long, value_name = "TYPE", default_value = "")]
    content_type: String,
    /// A file with the response headers: a JSON object of names and values.
    #[arg(long, value_name = "FILE.json")]
    headers: Option<PathBuf>,
    /// The output format.
    #[arg(long, value_enum, default_value = "atom")]
    format: Format,
    /// Write the source of each field and the repairs instead, as JSON.
    #[arg(long)]
    explain: bool,
    /// Guess the language of entries that declare none.
    #[arg(long)]
    detect_language: bool,
    /// Remove from all texts what could act in a page that shows them.
    #[arg(long, conflicts_with = "explain")]
    sanitize: bool,
    /// Write one JSON object per line for each document, with the fields "file" and "feed", "atom",
    /// "explained" or "error". A document that cannot be normalized does not prevent the others.
    #[arg(long)]
    ndjson: bool,
    /// Normalize the documents listed in this file, one object per line, with the fields "file",
    /// "url", "content_type", "headers" and "out"; - reads the list from standard input.
    #[arg(long, value_name = "MANIFEST.jsonl", requires = "out", conflicts_with_all = ["files", "ndjson"])]
    batch: Option<PathBuf>,
    /// The folder for the output of --batch.
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
    if args.files.is_empty() && io::stdin().is_terminal() {
        return Err("no document given: name a FILE, or pipe the document to standard input".into());
    }
    let headers = match &args.headers {
        Some(path) => serde_json::from_slice(&read(path)?)
            .map_err(|err| format!("{}: not a JSON object of headers: {err}", path.display()))?,
        None => BTreeMap::new(),
    };
    let context = context(args.url.clone(), &args.content_type, headers);
    if args.ndjson {
        return lines::run(&context, args);
    }
    let path = match &args.files[..] {
        [] => Path::new("-"),
        [path] => path,
        _ => return Err("several documents are written one per line: add --ndjson".into()),
    };
    let written = written(&read(path)?, &context, args)?;
    print_bytes(format!("{}\n", written.text.trim_end()).as_bytes());
    if !written.repairs.is_empty() {
        print_note(format!("{}; --explain has the details", written.repairs));
    }
    Ok(ExitCode::SUCCESS)
}

/// The output for one document.
struct WrittenDocument {
    text: String,
    /// The codes of the repairs and adaptations, each once; empty for a document that needs none, and
    /// for an explanation, which lists them itself.
    repairs: String,
}

/// Returns the output that the options request for one document.
fn written(
    bytes: &[u8],
    context: &Context,
    args: &NormalizeArgs,
) -> Result<WrittenDocument, Box<dyn error::Error>> {
    let mapping = mapping(context)?;
    if args.explain && mapping.is_some() {
        return Err("what a mapping reads cannot be explained: leave out --explain".into());
    }
    if args.explain {
        let mut explained = explain(bytes, context)?;
        if args.detect_language {
            explained.detect_languages();
        }
        let text = serde_json::to_string_pretty(&explained.to_json())? + "\n";
        return Ok(WrittenDocument { text, repairs: String::new() });
    }
    let mut normalized = match &mapping {
        None => normalize(bytes, context)?,
        Some(mapping) => {
            let context = Context { url: without_fragment(&context.url), ..context.clone() };
            Normalized::from_parsed(documents::read_mapped(bytes, &context, mapping)?, &context)
        }
    };
    if args.detect_language {
        normalized.detect_languages();
    }
    if args.sanitize {
        normalized.sanitize();
    }
    let repairs = repair::listed_codes(normalized.repairs());
    let text = match args.format {
        Format::Json => serde_json::to_string_pretty(&normalized.to_json())? + "\n",
        Format::Atom => normalized.to_atom(),
    };
    Ok(WrittenDocument { text, repairs })
}

/// Returns the mapping in the fragment of the URL of a document, if it is one. Other fragments are those of
/// parts of a document, and say nothing here.
fn mapping(context: &Context) -> Result<Option<Fragment>, InvalidFragment> {
    let fragment = context.url.fragment().filter(|fragment| is_path(fragment));
    let fragment = fragment.map(Fragment::parse).transpose()?;
    Ok(fragment.filter(Fragment::is_mapping))
}

/// Returns whether a fragment is a JSONPath, percent-encoded or not.
fn is_path(fragment: &str) -> bool {
    fragment.starts_with('$') || fragment.starts_with("%24")
}

fn without_fragment(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_fragment(None);
    url
}

/// Returns the context of a document. `content_type` takes precedence over that of the headers.
fn context(url: Url, content_type: &str, headers: BTreeMap<String, String>) -> Context {
    let mut context = Context::new(url);
    if !content_type.is_empty() {
        context.headers.push(("content-type".to_owned(), content_type.to_owned()));
    }
    let lower = headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value));
    context.headers.extend(lower);
    context
}

/// Reads a file; - is standard input.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = match path == Path::new("-") {
        true => io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes),
        false => fs::read(path),
    };
    read.map_err(|err| format!("{}: {err}", path.display()))
}
