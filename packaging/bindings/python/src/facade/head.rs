//! The dictionary of a feed, or of the source of an entry.

use feedgate_feed::model::{Feed, Link};
use feedgate_feed::passes;
use pyo3::prelude::*;

use super::dictionary::Writer;
use super::texts::Around;
use super::{UNKNOWN_BASE, dates, elements, entry, people, texts};

/// Fills the dictionary of a feed, which has no entries.
pub(super) fn fill(feed: &Feed, writer: &Writer<'_, '_>) -> PyResult<()> {
    let mut head = feed.clone();
    if writer.document.sanitizes {
        passes::sanitize(&mut head);
    }
    fill_head(&head, Around::default(), writer)
}

/// Fills the dictionary of a feed whose texts are sanitized.
pub(super) fn fill_head(feed: &Feed, around: Around<'_>, writer: &Writer<'_, '_>) -> PyResult<()> {
    let around = around.inside(feed.lang.as_deref(), feed.base.as_deref());
    if !feed.id.is_empty() && feed.id != UNKNOWN_BASE {
        writer.set("id", &feed.id)?;
    }
    texts::set("title", feed.title.as_ref(), around, writer)?;
    texts::set("subtitle", feed.subtitle.as_ref(), around, writer)?;
    texts::set("rights", feed.rights.as_ref(), around, writer)?;
    writer.set_if_some("language", feed.lang.as_deref())?;
    if let Some(updated) = feed.updated.filter(|date| date.timestamp() != 0) {
        dates::set("updated", updated, writer)?;
        if writer.document.is_rss() {
            dates::set("published", updated, writer)?;
        }
    }
    people::set_authors(&feed.authors, writer)?;
    people::set_contributors(&feed.contributors, writer)?;
    entry::set_links(&feed.links, writer)?;
    entry::set_tags(&feed.categories, writer)?;
    if let Some(generator) = &feed.generator {
        writer.set("generator", &generator.name)?;
        let detail = writer.dictionary()?;
        detail.set("name", &generator.name)?;
        detail.set_if_some("href", generator.uri.as_deref())?;
        detail.set_if_some("version", generator.version.as_deref())?;
        writer.set_dictionary("generator_detail", &detail)?;
    }
    writer.set_if_some("icon", feed.icon.as_deref())?;
    if let Some(logo) = &feed.logo {
        writer.set("logo", logo)?;
        let image = writer.dictionary()?;
        image.set("href", logo)?;
        writer.set_dictionary("image", &image)?;
    }
    writer.set_if_some("newlocation", feed.moved_to.as_deref())?;
    elements::set(&feed.extensions, around, writer)
}

/// Fills the dictionary of the feed that an entry was copied from. `url` of RSS is its `self` link.
pub(super) fn fill_source(
    source: &Feed,
    around: Around<'_>,
    writer: &Writer<'_, '_>,
) -> PyResult<()> {
    let is_itself = |link: &&Link| link.rel == "self";
    let itself = source.links.iter().find(is_itself);
    if let Some(link) = itself.filter(|_| source.id.is_empty() || writer.document.is_rss()) {
        writer.set("href", &link.href)?;
    }
    fill_head(source, around, writer)
}
