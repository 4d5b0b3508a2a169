//! A list of changes to an RSS document, and their application.

use std::ops::Range;

use super::super::scan::{ATOM, ChannelParts, SOURCE};
use super::ChannelInfo;
use crate::xml::escaped;

/// The changes to a document, by position.
pub(super) struct Edits<'p> {
    parts: &'p ChannelParts,
    /// The ranges to replace, with the new text.
    pub(super) list: Vec<(Range<usize>, String)>,
    /// The prefixes to declare on the root element.
    declared: Vec<(String, &'static str)>,
}

impl<'p> Edits<'p> {
    /// Creates an empty list of changes.
    pub(super) fn new(parts: &'p ChannelParts) -> Edits<'p> {
        Edits { parts, list: Vec::new(), declared: Vec::new() }
    }

    /// Returns the prefix of a namespace in the channel, and declares one if needed.
    pub(super) fn prefix(&mut self, namespace: &'static str, usual: &str) -> String {
        let held = self.parts.prefixes.iter().rev();
        let mut known = held.filter(|(_, space)| space == namespace).map(|(prefix, _)| prefix);
        if let Some(prefix) = known.next() {
            return prefix.clone();
        }
        if let Some((prefix, _)) = self.declared.iter().find(|(_, space)| *space == namespace) {
            return prefix.clone();
        }
        let is_free = |wanted: &String| self.parts.prefixes.iter().all(|(held, _)| held != wanted);
        let numbered = (1..).map(|n| format!("{usual}{n}"));
        let prefix = std::iter::once(usual.to_owned()).chain(numbered).find(is_free);
        let prefix = prefix.unwrap_or_else(|| usual.to_owned());
        self.declared.push((prefix.clone(), namespace));
        prefix
    }

    /// Returns the missing channel elements, each as one line.
    pub(super) fn missing(&mut self, about: &ChannelInfo) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(url) = about.url.as_ref().filter(|_| self.parts.itself.is_none()) {
            let (atom, url) = (self.prefix(ATOM, "atom"), escaped(url));
            lines.push(format!(
                "<{atom}:link rel=\"self\" type=\"application/rss+xml\" href=\"{url}\"/>"
            ));
        }
        let Some(cloud) = &about.cloud else { return lines };
        let public = cloud.as_str().trim_end_matches('/');
        if self.parts.hub.is_none() {
            let (atom, hub) = (self.prefix(ATOM, "atom"), escaped(&format!("{public}/hub")));
            lines.push(format!("<{atom}:link rel=\"hub\" href=\"{hub}\"/>"));
        }
        let register = "/rsscloud/pleaseNotify";
        if self.parts.cloud.is_none() {
            let path = escaped(&format!("{}{register}", cloud.path().trim_end_matches('/')));
            let domain = escaped(cloud.host_str().unwrap_or_default());
            let port = cloud.port_or_known_default().unwrap_or(80);
            let protocol = if cloud.scheme() == "https" { "https-post" } else { "http-post" };
            lines.push(format!(
                "<cloud domain=\"{domain}\" port=\"{port}\" path=\"{path}\" \
                 registerProcedure=\"\" protocol=\"{protocol}\"/>"
            ));
        }
        if self.parts.source_cloud.is_none() {
            let source = self.prefix(SOURCE, "source");
            let url = escaped(&format!("{public}{register}"));
            lines.push(format!("<{source}:cloud>{url}</{source}:cloud>"));
        }
        lines
    }

    /// Returns the document with all changes applied.
    pub(super) fn apply(mut self, text: &str) -> String {
        let declared = self.declared.iter();
        let declared: String =
            declared.map(|(prefix, space)| format!(" xmlns:{prefix}=\"{space}\"")).collect();
        let root = self.parts.root_tag;
        self.list.push((root..root, declared));
        self.list.sort_by_key(|(range, _)| (range.start, range.end));
        let mut out = String::with_capacity(text.len() + 1_024);
        let mut done = 0;
        for (range, new) in self.list {
            // Changes inside a removed item are dropped.
            if range.start >= done {
                out.push_str(&text[done..range.start]);
                out.push_str(&new);
                done = range.end;
            }
        }
        out.push_str(&text[done..]);
        out
    }
}
