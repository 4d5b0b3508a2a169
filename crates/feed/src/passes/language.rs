//! The declared language of the feed, of each entry and of each text.

use crate::context::Context;
use crate::model::{Content, Feed, Link, Text};

/// Writes language tags in the form of BCP 47, and sets the language of the feed on each entry,
/// because entries are stored and sent without their feed. A feed that declares no language gets
/// that of `Content-Language`, if the header names exactly one.
///
/// An empty tag declares the language to be unknown, overriding the enclosing declaration (XML 1.0
/// `#sec-lang-tag`); it is kept if there is an enclosing declaration.
pub(super) fn complete_languages(mut feed: Feed, context: &Context) -> Feed {
    tidy_tag(&mut feed.lang);
    if feed.lang.as_deref().is_none_or(str::is_empty) {
        feed.lang = context.header("content-language").map(str::to_owned);
        tidy_tag(&mut feed.lang);
    }
    let outer = feed.lang.clone();
    tidy_texts([&mut feed.title, &mut feed.subtitle, &mut feed.rights], outer.as_deref());
    tidy_links(&mut feed.links);
    for entry in &mut feed.entries {
        tidy_tag(&mut entry.lang);
        if entry.lang.is_none() {
            entry.lang.clone_from(&outer);
        }
        tidy_links(&mut entry.links);
        let lang = entry.lang.as_deref();
        tidy_texts([&mut entry.title, &mut entry.summary, &mut entry.rights], lang);
        if let Some(Content::Text(text)) = &mut entry.content {
            tidy_text(text, lang);
        }
        if let Some(source) = &mut entry.source {
            tidy_links(&mut source.links);
            tidy_tag(&mut source.lang);
            source.lang.take_if(|own| Some(own.as_str()) == lang);
            let lang = source.lang.as_deref().or(lang);
            tidy_texts([&mut source.title, &mut source.subtitle, &mut source.rights], lang);
        }
        if outer.is_none() {
            entry.lang.take_if(|lang| lang.is_empty());
        }
    }
    feed
}

fn tidy_links(links: &mut [Link]) {
    for link in links {
        tidy_tag(&mut link.hreflang);
        link.hreflang.take_if(|lang| lang.is_empty());
    }
}

fn tidy_texts(texts: [&mut Option<Text>; 3], outer: Option<&str>) {
    texts.into_iter().flatten().for_each(|text| tidy_text(text, outer));
}

/// Removes the language of a text if it equals the surrounding one.
fn tidy_text(text: &mut Text, outer: Option<&str>) {
    tidy_tag(&mut text.lang);
    text.lang.take_if(|lang| lang.as_str() == outer.unwrap_or_default());
}

/// Corrects `en_US` to `en-US`, and removes what is not a language tag.
fn tidy_tag(tag: &mut Option<String>) {
    let Some(held) = tag.take() else { return };
    let tidy = held.trim().replace('_', "-");
    if tidy.is_empty() {
        *tag = Some(tidy);
        return;
    }
    let part = |part: &str| {
        (1..=8).contains(&part.len()) && part.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let letters = |part: &str| part.chars().all(|c| c.is_ascii_alphabetic());
    let sound = tidy.split('-').all(part) && tidy.split('-').next().is_some_and(letters);
    if sound {
        *tag = Some(tidy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_written_as_bcp_47_has_them() {
        let cases = [
            ("en_US", Some("en-US")),
            (" de ", Some("de")),
            ("zh-Hant-TW", Some("zh-Hant-TW")),
            ("", Some("")),
            ("English (US)", None),
        ];
        for (tag, want) in cases {
            let mut tag = Some(tag.to_owned());
            tidy_tag(&mut tag);
            assert_eq!(tag.as_deref(), want);
        }
    }
}
