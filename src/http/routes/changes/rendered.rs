//! A rendered document of changes: its text, the parts of it, and how long it is served.
//!
//! A document is long if rendering or compressing it takes more than some 10 ms. Strangers can make a
//! document long, so no request pays for the next edition of one: the document is served somewhat
//! longer, while the next is rendered and compressed in the background ([`Freshness::Renewable`]).

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use chrono::TimeDelta;
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::edition::{self, Edition, EditionText, LineEnd, Lines, Pages};
use feedgate_core::store::StoreError;
use feedgate_store::Store;

/// The maximum age of a served document.
const LONGEST_AGE: Duration = Duration::from_secs(60);
/// How much longer each change that was read lets a document be served despite a new one: ten times
/// the time that reading and rendering it takes.
const EXTENSION_PER_CHANGE: Duration = Duration::from_micros(100);
/// How much longer a long document is served while the next edition is rendered.
const RENEWAL_TIME: Duration = Duration::from_secs(5);
/// The number of changes that makes a document long.
const LONG_CHANGES: usize = 2_000;
/// The length of the text that makes a document long, in bytes.
pub(super) const LONG_BYTES: usize = 256 << 10;

/// How a cached document may be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freshness {
    /// The document is up to date.
    Fresh,
    /// The document is served until the next edition is rendered.
    Renewable,
    /// The document is no longer served.
    Expired,
}

/// A rendered document.
pub(super) struct RenderedChanges {
    /// The edition.
    pub(super) edition: Edition,
    /// The text up to the end of the last line.
    pub(super) text: Bytes,
    head_bytes: usize,
    line_ends: Vec<LineEnd>,
    /// The number of changes that were read, including those that the edition leaves out.
    read: usize,
    is_cut: bool,
    zipped: OnceCell<Bytes>,
    rendered_at: Instant,
    is_being_renewed: AtomicBool,
}

impl RenderedChanges {
    /// Creates a document with this text, which was read from `rendered_at` on.
    pub(super) fn new(
        edition: Edition,
        text: EditionText,
        rendered_at: Instant,
    ) -> RenderedChanges {
        let EditionText { mut text, head_bytes, mut line_ends, read, is_cut } = text;
        text.shrink_to_fit();
        line_ends.shrink_to_fit();
        RenderedChanges {
            edition,
            text: text.into(),
            head_bytes,
            line_ends,
            read,
            is_cut,
            zipped: OnceCell::new(),
            rendered_at,
            is_being_renewed: AtomicBool::new(false),
        }
    }

    /// Returns how the document may be served at `now`, given that `current` was the edition a
    /// moment ago.
    pub(super) fn freshness(&self, current: &Edition, now: Instant) -> Freshness {
        let (Lines::Listed(rendered), Lines::Listed(listed)) =
            (&self.edition.lines, &current.lines)
        else {
            let is_same = self.edition == *current;
            return if is_same { Freshness::Fresh } else { Freshness::Expired };
        };
        let changes = u32::try_from(self.read).unwrap_or(u32::MAX);
        // A document that was rendered while this request waited is newer than the edition.
        let fresh_time = match rendered.newest < listed.newest {
            true => EXTENSION_PER_CHANGE.saturating_mul(changes),
            false => LONGEST_AGE,
        };
        let renewal_time = if self.is_long() { RENEWAL_TIME } else { Duration::ZERO };
        let served_time = fresh_time.saturating_add(renewal_time).min(LONGEST_AGE);
        let age = now.saturating_duration_since(self.rendered_at);
        if age >= served_time {
            return Freshness::Expired;
        }
        let is_fresh = age < served_time - renewal_time.min(served_time);
        if is_fresh { Freshness::Fresh } else { Freshness::Renewable }
    }

    /// Returns whether this caller is to render the next edition: the first one, until
    /// [`Self::end_renewal`].
    pub(super) fn begin_renewal(&self) -> bool {
        !self.is_being_renewed.swap(true, Ordering::Relaxed)
    }

    /// Lets another caller render the next edition, because that failed.
    pub(super) fn end_renewal(&self) {
        self.is_being_renewed.store(false, Ordering::Relaxed);
    }

    fn is_long(&self) -> bool {
        self.read >= LONG_CHANGES || self.text.len() >= LONG_BYTES
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

/// Renders an edition, and compresses it if it is long.
pub(super) async fn render(
    store: &Arc<Store>,
    edition: Edition,
) -> Result<RenderedChanges, StoreError> {
    let rendered_at = Instant::now();
    let text = Pages::read(store, edition.clone()).into_text().await?;
    let rendered = RenderedChanges::new(edition, text, rendered_at);
    if rendered.is_long() {
        // A failure is handled when the text is sent.
        let _ = rendered.zipped().await;
    }
    Ok(rendered)
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
    use feedgate_core::store::ChangesWindow;

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
            read: lines,
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
    async fn h11_a_document_is_served_until_something_is_new_and_a_long_one_for_longer() {
        use Freshness::{Expired, Fresh, Renewable};
        let long = "x".repeat(LONG_BYTES);
        #[rustfmt::skip]
        let cases = [
            ("as it was rendered",                10,      "",    7, 59_000, Fresh),
            ("rendered while it was waited for",  10,      "",    6,  1_000, Fresh),
            ("a minute at most",                  10,      "",    7, 60_000, Expired),
            ("something is new",                  10,      "",    8,  1_000, Expired),
            ("a long one is rendered less often", 100_000, "",    8,  9_999, Fresh),
            ("but is",                            100_000, "",    8, 10_000, Renewable),
            ("while the former one is served",    100_000, "",    8, 14_999, Renewable),
            ("for a while",                       100_000, "",    8, 15_000, Expired),
            ("or the former one grows old",       100_000, "",    7, 54_999, Fresh),
            ("which nobody waits for",            100_000, "",    7, 59_999, Renewable),
            ("a minute at most, as others",       100_000, "",    7, 60_000, Expired),
            ("many changes make a long one",      2_000,   "",    8,    200, Renewable),
            ("and few do not",                    1_999,   "",    8,    200, Expired),
            ("but for the length of the text",    1,       &long, 8,  1_000, Renewable),
        ];
        for (reason, lines, line, newest, after_ms, want) in cases {
            let rendered = rendered(lines, line);
            let now = rendered.rendered_at + Duration::from_millis(after_ms);
            assert_eq!(rendered.freshness(&edition(newest), now), want, "{reason}");
        }
    }

    #[test]
    fn h11_one_caller_renders_the_next_edition_until_that_fails() {
        let document = rendered(1, "");
        assert_eq!([(); 3].map(|()| document.begin_renewal()), [true, false, false]);
        document.end_renewal();
        assert!(document.begin_renewal());
    }
}
