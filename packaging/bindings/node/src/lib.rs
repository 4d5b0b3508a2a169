//! The native half of the Node.js package `feedgate-feed`: reads a document and returns the feed as
//! JSON, which JavaScript engines make objects of faster than addons can. `index.js` is the other
//! half.

mod view;

use feedgate_feed::url::Url;
use feedgate_feed::{Context, Normalized, serde_json};
use napi::bindgen_prelude::{AsyncTask, Uint8Array};
use napi::{Env, Error, Result, Status, Task};
use napi_derive::napi;

/// Parsing allocates many small pieces, which the allocator of the system does slowly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The code of the error that a document is not a feed.
const NOT_A_FEED: &str = "NOT_A_FEED";

/// How a document is read, and what is made of it.
#[derive(Clone, Debug)]
struct Options {
    context: Context,
    sanitizes: bool,
    writes_atom: bool,
}

impl Options {
    fn new(
        url: &str,
        headers: Vec<(String, String)>,
        sanitizes: bool,
        writes_atom: bool,
    ) -> Result<Options> {
        let url = Url::parse(url)
            .map_err(|err| Error::new(Status::InvalidArg, format!("url {url:?}: {err}")))?;
        let headers =
            headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        let context = Context { headers, ..Context::new(url) };
        Ok(Options { context, sanitizes, writes_atom })
    }

    /// Reads a document. The result is an Atom document or JSON.
    fn read(&self, bytes: &[u8]) -> Result<String> {
        let mut normalized = feedgate_feed::normalize(bytes, &self.context)
            .map_err(|err| Error::new(Status::GenericFailure, format!("{NOT_A_FEED}: {err}")))?;
        if self.sanitizes {
            normalized.sanitize();
        }
        if self.writes_atom { Ok(normalized.to_atom()) } else { to_json(&normalized) }
    }
}

fn to_json(normalized: &Normalized) -> Result<String> {
    let json = serde_json::to_string(&view::Feed::from(normalized));
    json.map_err(|err| Error::new(Status::GenericFailure, err.to_string()))
}

/// Pairs of names and values in one list.
fn pairs(names_and_values: Vec<String>) -> Vec<(String, String)> {
    let mut given = names_and_values.into_iter();
    let mut pairs = Vec::new();
    while let (Some(name), Some(value)) = (given.next(), given.next()) {
        pairs.push((name, value));
    }
    pairs
}

/// Reads a document. `headers` has names and values in turn.
#[napi]
pub fn read(
    data: &[u8],
    url: String,
    headers: Vec<String>,
    sanitizes: bool,
    writes_atom: bool,
) -> Result<String> {
    Options::new(&url, pairs(headers), sanitizes, writes_atom)?.read(data)
}

/// Reads a document on another thread.
#[napi]
pub fn read_async(
    data: Uint8Array,
    url: String,
    headers: Vec<String>,
    sanitizes: bool,
    writes_atom: bool,
) -> Result<AsyncTask<Reading>> {
    let options = Options::new(&url, pairs(headers), sanitizes, writes_atom)?;
    Ok(AsyncTask::new(Reading { data: data.to_vec(), options }))
}

/// A document that is read on another thread.
#[derive(Debug)]
pub struct Reading {
    data: Vec<u8>,
    options: Options,
}

impl Task for Reading {
    type Output = String;
    type JsValue = String;

    fn compute(&mut self) -> Result<String> {
        self.options.read(&self.data)
    }

    fn resolve(&mut self, _env: Env, output: String) -> Result<String> {
        Ok(output)
    }
}
