//! The language of each entry: as declared, else as it reads.

use whatlang::Lang;

use crate::context::Context;
use crate::model::{Content, Entry, Feed, Link, Text};

/// How much text is looked at, in characters. Telling takes 111 µs per KB, ten times
/// as long as parsing it; more text changes the answer rarely.
const PREFIX: usize = 400;

/// Less text than this gives no answer worth having.
const ENOUGH: usize = 40;

/// The least confidence taken. The crate's own `is_reliable` refuses ordinary
/// sentences in English and French.
const CONFIDENT: f64 = 0.5;

/// Settles what is declared: tags as BCP 47 writes them, and the feed's on each entry,
/// because entries are kept and sent without their feed. A feed that declares none has
/// that of its `Content-Language`, if that names one and not several.
///
/// An empty tag says that nothing is known of the language, whatever is declared around
/// it (XML 1.0 `#sec-lang-tag`); it stays where something is.
pub(super) fn settle(mut feed: Feed, context: &Context) -> Feed {
    settle_tag(&mut feed.lang);
    if feed.lang.as_deref().is_none_or(str::is_empty) {
        feed.lang = context.header("content-language").map(str::to_owned);
        settle_tag(&mut feed.lang);
    }
    let outer = feed.lang.clone();
    settle_texts([&mut feed.title, &mut feed.subtitle, &mut feed.rights], outer.as_deref());
    settle_links(&mut feed.links);
    for entry in &mut feed.entries {
        settle_tag(&mut entry.lang);
        if entry.lang.is_none() {
            entry.lang.clone_from(&outer);
        }
        settle_links(&mut entry.links);
        let lang = entry.lang.as_deref();
        settle_texts([&mut entry.title, &mut entry.summary, &mut entry.rights], lang);
        if let Some(Content::Text(text)) = &mut entry.content {
            settle_text(text, lang);
        }
        if let Some(source) = &mut entry.source {
            settle_links(&mut source.links);
            settle_tag(&mut source.lang);
            source.lang.take_if(|own| Some(own.as_str()) == lang);
            let lang = source.lang.as_deref().or(lang);
            settle_texts([&mut source.title, &mut source.subtitle, &mut source.rights], lang);
        }
        if outer.is_none() {
            entry.lang.take_if(|lang| lang.is_empty());
        }
    }
    feed
}

fn settle_links(links: &mut [Link]) {
    for link in links {
        settle_tag(&mut link.hreflang);
        link.hreflang.take_if(|lang| lang.is_empty());
    }
}

fn settle_texts(texts: [&mut Option<Text>; 3], outer: Option<&str>) {
    texts.into_iter().flatten().for_each(|text| settle_text(text, outer));
}

/// A text says its language only where that differs from what is around it.
fn settle_text(text: &mut Text, outer: Option<&str>) {
    settle_tag(&mut text.lang);
    text.lang.take_if(|lang| lang.as_str() == outer.unwrap_or_default());
}

/// Guesses the language of an entry that declares none. "the longer the content, the
/// more relevant" (seed 003)
///
/// Meant for entries that are new; for all of them at each poll it is too slow.
pub fn detect(entry: &mut Entry) {
    if entry.lang.as_deref().is_some_and(|lang| !lang.is_empty()) {
        return;
    }
    let mut sample = String::new();
    let content = match &entry.content {
        Some(Content::Text(text)) => Some(text),
        _ => None,
    };
    for text in [content, entry.summary.as_ref(), entry.title.as_ref()].into_iter().flatten() {
        if sample.chars().count() < PREFIX {
            sample.push_str(&beginning(text));
            sample.push(' ');
        }
    }
    let sample: String = sample.trim().chars().take(PREFIX).collect();
    if sample.chars().count() < ENOUGH {
        return;
    }
    let found = whatlang::detect(&sample).filter(|found| found.confidence() >= CONFIDENT);
    entry.lang = found.and_then(|found| two_letters(found.lang())).map(str::to_owned);
}

/// The text without markup, of at most a few times what is looked at.
fn beginning(text: &Text) -> String {
    let end = text.value.char_indices().nth(PREFIX * 8).map_or(text.value.len(), |(at, _)| at);
    Text { value: text.value[..end].to_owned(), ..Text { kind: text.kind, ..Text::default() } }
        .to_plain()
}

/// `en_US` is meant as `en-US`; what is no tag at all says nothing.
fn settle_tag(tag: &mut Option<String>) {
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

/// ISO 639-1 for a language the crate knows; `None` where there is none.
fn two_letters(lang: Lang) -> Option<&'static str> {
    let code = lang.code();
    CODES.iter().find(|(three, _)| *three == code).map(|(_, two)| *two)
}

/// ISO 639-3, which the crate speaks, and ISO 639-1, which BCP 47 prefers.
#[rustfmt::skip]
const CODES: &[(&str, &str)] = &[
    ("afr", "af"), ("aka", "ak"), ("amh", "am"), ("ara", "ar"), ("aze", "az"),
    ("bel", "be"), ("ben", "bn"), ("bul", "bg"), ("cat", "ca"), ("ces", "cs"),
    ("cmn", "zh"), ("dan", "da"), ("deu", "de"), ("ell", "el"), ("eng", "en"),
    ("epo", "eo"), ("est", "et"), ("fin", "fi"), ("fra", "fr"), ("guj", "gu"),
    ("heb", "he"), ("hin", "hi"), ("hrv", "hr"), ("hun", "hu"), ("hye", "hy"),
    ("ind", "id"), ("ita", "it"), ("jav", "jv"), ("jpn", "ja"), ("kan", "kn"),
    ("kat", "ka"), ("khm", "km"), ("kor", "ko"), ("lat", "la"), ("lav", "lv"),
    ("lit", "lt"), ("mal", "ml"), ("mar", "mr"), ("mkd", "mk"), ("mya", "my"),
    ("nep", "ne"), ("nld", "nl"), ("nob", "nb"), ("ori", "or"), ("pan", "pa"),
    ("pes", "fa"), ("pol", "pl"), ("por", "pt"), ("ron", "ro"), ("rus", "ru"),
    ("sin", "si"), ("slk", "sk"), ("slv", "sl"), ("sna", "sn"), ("spa", "es"),
    ("srp", "sr"), ("swe", "sv"), ("tam", "ta"), ("tel", "te"), ("tgl", "tl"),
    ("tha", "th"), ("tuk", "tk"), ("tur", "tr"), ("ukr", "uk"), ("urd", "ur"),
    ("uzb", "uz"), ("vie", "vi"), ("yid", "yi"), ("zul", "zu"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_sentences_are_told_and_short_ones_are_not() {
        let cases = [
            ("The ferry did not leave this morning because the wind was too strong.", Some("en")),
            ("Le ferry n'est pas parti ce matin parce que le vent était trop fort.", Some("fr")),
            ("Die Fähre ist heute Morgen nicht gefahren, weil der Wind zu stark war.", Some("de")),
            (
                "今朝は風が強すぎたため、フェリーは出港しませんでした。次の便は明日の朝に出る予定です。",
                Some("ja"),
            ),
            ("Photo of the day", None),
            ("", None),
        ];
        for (text, want) in cases {
            let mut entry = Entry { summary: Some(Text::plain(text)), ..Entry::default() };
            detect(&mut entry);
            assert_eq!(entry.lang.as_deref(), want, "{text}");
        }
    }

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
            settle_tag(&mut tag);
            assert_eq!(tag.as_deref(), want);
        }
    }
}
