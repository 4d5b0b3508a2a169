//! A rendered document of changes: its text, the parts of it, and how long it is served.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::TimeDelta;
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::edition::{self, Edition, EditionText, LineEnd, Lines, Pages};
use feedgate_core::ports::{Store, StoreError};

/// The maximum age of a served document.
const LONGEST_AGE: Duration = Duration::from_secs(60);
/// How much longer each line lets a document be served despite a new change: ten times its
/// rendering time.
const EXTENSION_PER_LINE: Duration = Duration::from_micros(100);

/// A rendered document.
pub(super) struct RenderedChanges {
    /// The edition.
    pub(super) edition: Edition,
    /// The text up to the end of the last line.
    pub(super) text: Bytes,
    head_bytes: usize,
    line_ends: Vec<LineEnd>,
    is_cut: bool,
    zipped: OnceCell<Bytes>,
    rendered_at: Instant,
}

impl RenderedChanges {
    /// Creates a document with this text, which was read from `rendered_at` on.
    pub(super) fn new(
        edition: Edition,
        text: EditionText,
        rendered_at: Instant,
    ) -> RenderedChanges {
        let EditionText { mut text, head_bytes, mut line_ends, is_cut } = text;
        text.shrink_to_fit();
        line_ends.shrink_to_fit();
        let (text, zipped) = (text.into(), OnceCell::new());
        RenderedChanges { edition, text, head_bytes, line_ends, is_cut, zipped, rendered_at }
    }

    /// Returns whether a cached document may be served at `now`, given that `current` was the
    /// edition a moment ago.
    pub(super) fn may_serve(&self, current: &Edition, now: Instant) -> bool {
        let (Lines::Listed(rendered), Lines::Listed(listed)) =
            (&self.edition.lines, &current.lines)
        else {
            return self.edition == *current;
        };
        let age = now.saturating_duration_since(self.rendered_at);
        let lines = u32::try_from(self.line_ends.len()).unwrap_or(u32::MAX);
        let is_extended = age < EXTENSION_PER_LINE.saturating_mul(lines);
        // A document that was rendered while this request waited is newer than the edition.
        age < LONGEST_AGE && (rendered.newest >= listed.newest || is_extended)
    }

    /// Returns the text in two pieces, or of the part of it that covers the last `span`.
    pub(super) fn pieces(&self, span: Option<TimeDelta>) -> Vec<Bytes> {
        let last_line = self.text.len();
        let part = span.map_or(last_line, |span| {
            let from = self.edition.updated - span;
            let lines = self.line_ends.partition_point(|line| line.at >= from);
            match lines {
                0 => self.head_bytes,
                lines => self.line_ends[lines - 1].end,
            }
        });
        let end = edition::end(self.is_cut && part == last_line);
        vec![self.text.slice(..part), end.into()]
    }

    /// Returns the length of the body without compression.
    pub(super) fn length(&self, span: Option<TimeDelta>) -> usize {
        self.pieces(span).iter().map(Bytes::len).sum()
    }

    /// Returns the whole text compressed, which is done once.
    pub(super) async fn zipped(&self) -> std::io::Result<Bytes> {
        self.zipped.get_or_try_init(|| zip(self.pieces(None))).await.cloned()
    }

    /// Returns the current size in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let zipped = self.zipped.get().map_or(0, Bytes::len);
        self.text.len() + size_of_val(self.line_ends.as_slice()) + zipped
    }
}

/// Renders an edition.
pub(super) async fn render(
    store: &Arc<dyn Store>,
    edition: Edition,
) -> Result<RenderedChanges, StoreError> {
    let rendered_at = Instant::now();
    let text = Pages::read(store, edition.clone()).into_text().await?;
    Ok(RenderedChanges::new(edition, text, rendered_at))
}

/// Compresses a text on a blocking thread.
pub(super) async fn zip(pieces: Vec<Bytes>) -> std::io::Result<Bytes> {
    let zip = tokio::task::spawn_blocking(move || {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        pieces.iter().try_for_each(|piece| gzip.write_all(piece))?;
        let mut zipped = gzip.finish()?;
        zipped.shrink_to_fit();
        Ok(Bytes::from(zipped))
    });
    zip.await.map_err(std::io::Error::other)?
}

#[cfg(test)]
pub(super) mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::http::kit::viewer_access::ViewerAccess;
    use feedgate_core::ping::TimeUnit;
    use feedgate_core::ports::ChangesWindow;

    fn edition(newest: i64) -> Edition {
        let updated = DateTime::UNIX_EPOCH;
        let lines = Lines::Listed(ChangesWindow { from: updated, until: updated, newest });
        let access = ViewerAccess::Public;
        Edition { lines, updated, count: 0, unit: TimeUnit::Minutes, access }
    }

    /// A document of so many lines, one for each second before it was rendered.
    pub(in super::super) fn rendered(lines: usize, line: &str) -> Arc<RenderedChanges> {
        let mut text = EditionText {
            text: "head\n".to_owned(),
            head_bytes: 5,
            line_ends: Vec::new(),
            is_cut: true,
        };
        for number in 0..lines {
            text.text.push_str(line);
            let at = DateTime::UNIX_EPOCH - TimeDelta::seconds(number as i64);
            text.line_ends.push(LineEnd { at, end: text.text.len() });
        }
        Arc::new(RenderedChanges::new(edition(7), text, Instant::now()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_document_is_served_until_something_is_new_and_a_long_one_for_longer() {
        #[rustfmt::skip]
        let cases = [
            ("as it was rendered",                10,        7, 59, true),
            ("rendered while it was waited for",  10,        6,  1, true),
            ("a minute at most",                  10,        7, 60, false),
            ("something is new",                  10,        8,  1, false),
            ("a long one is rendered less often", 100_000,   8,  9, true),
            ("but is",                            100_000,   8, 10, false),
        ];
        for (reason, lines, newest, after_s, want) in cases {
            let rendered = rendered(lines, "");
            let now = rendered.rendered_at + Duration::from_secs(after_s);
            assert_eq!(rendered.may_serve(&edition(newest), now), want, "{reason}");
        }
    }
}
