//! Asking for documents at random, with wrk.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{AnyError, seconds};

/// Connections held open at once.
const CONNECTIONS: u32 = 64;

/// A document: where it is, and by what tags it is known.
pub(crate) struct Document {
    /// Its address, from the slash on.
    pub(crate) path: String,
    /// Its entity tag at the gateway.
    pub(crate) ours: String,
    /// Its entity tag at nginx.
    pub(crate) theirs: String,
}

/// How a document is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceivedRequest {
    /// As by somebody who does not have it.
    Whole,
    /// As by a cache that has it.
    Tagged,
}

impl ReceivedRequest {
    pub(crate) fn name(self) -> &'static str {
        match self {
            ReceivedRequest::Whole => "whole",
            ReceivedRequest::Tagged => "with its tag (304)",
        }
    }
}

/// What came of asking.
pub(crate) struct Load {
    /// Answers a second.
    pub(crate) per_s: f64,
    /// Ninety-nine of a hundred came within this time, in the words of wrk.
    pub(crate) p99: String,
}

impl Load {
    /// Nobody was asked.
    pub(crate) const NONE: Load = Load { per_s: 0.0, p99: String::new() };
}

/// What there is to be asked.
pub(crate) struct Questions<'a> {
    /// Where notes may be put.
    pub(crate) folder: &'a Path,
    /// The documents.
    pub(crate) documents: &'a [Document],
}

/// The same for all; what is asked is read from a file of lines.
const SCRIPT: &str = "
local requests = {}
init = function(args)
    math.randomseed(tonumber(args[2]))
    for line in io.lines(args[1]) do
        local path, tag = line:match('^(%S+) ?(.*)$')
        local headers = {}
        if tag ~= '' then headers['If-None-Match'] = tag end
        requests[#requests + 1] = wrk.format('GET', path, headers)
    end
end
request = function() return requests[math.random(#requests)] end
";

impl Questions<'_> {
    /// Asks the server at `url`, which knows documents by `tag`, for as long as it takes,
    /// first for a second that does not count.
    pub(crate) fn ask(
        &self,
        url: &str,
        request: ReceivedRequest,
        tag: fn(&Document) -> &str,
    ) -> Result<Load, AnyError> {
        let line = |document: &Document| match request {
            ReceivedRequest::Whole => document.path.clone(),
            ReceivedRequest::Tagged => format!("{} {}", document.path, tag(document)),
        };
        let lines: Vec<String> = self.documents.iter().map(line).collect();
        let (list, script) = (self.folder.join("list"), self.folder.join("script.lua"));
        fs::write(&list, lines.join("\n"))?;
        fs::write(&script, SCRIPT)?;
        wrk(url, &list, &script, 1)?;
        let told = wrk(url, &list, &script, seconds().as_secs())?;
        if request == ReceivedRequest::Whole && told.contains("Non-2xx") {
            return Err(format!("not all was answered well:\n{told}").into());
        }
        let value = |name: &str| {
            let line = told.lines().find_map(|line| line.trim().strip_prefix(name));
            line.map(|value| value.trim().to_owned()).ok_or_else(|| format!("no {name} in {told}"))
        };
        Ok(Load { per_s: value("Requests/sec:")?.parse()?, p99: value("99%")? })
    }
}

fn wrk(url: &str, list: &Path, script: &Path, seconds: u64) -> Result<String, AnyError> {
    let mut command = Command::new("wrk");
    command.args(["--latency", "-t1", &format!("-c{CONNECTIONS}"), &format!("-d{seconds}s"), "-s"]);
    let output = command.arg(script).arg(url).arg("--").arg(list).arg("7").output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
