//! Detects the language of entries that declare none.

use whatlang::Lang;

use crate::model::{Content, Entry, Text};

/// The maximum length of the examined text, in characters. Detection takes 111 µs per KB, ten times
/// as long as parsing, and more text rarely changes the result.
const PREFIX: usize = 400;

/// The minimum length of the text, in characters. The result for shorter texts is unreliable.
const ENOUGH: usize = 40;

/// The minimum confidence of an accepted result. `is_reliable` of the crate rejects ordinary
/// sentences in English and French.
const CONFIDENT: f64 = 0.5;

/// Detects the language of an entry that declares none. An entry with too little text stays
/// without: "the longer the content, the more relevant" (seed 003).
///
/// Detection takes longer than all passes together, so a polling program calls it for new entries
/// only.
pub fn detect_language(entry: &mut Entry) {
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

/// Returns the text without markup, with at most a few times the examined length.
fn beginning(text: &Text) -> String {
    let end = text.value.char_indices().nth(PREFIX * 8).map_or(text.value.len(), |(at, _)| at);
    Text { value: text.value[..end].to_owned(), ..Text { kind: text.kind, ..Text::default() } }
        .to_plain()
}

/// Returns the ISO 639-1 code of a language of the crate; `None` if there is none.
fn two_letters(lang: Lang) -> Option<&'static str> {
    let code = lang.code();
    CODES.iter().find(|(three, _)| *three == code).map(|(_, two)| *two)
}

/// The mapping from ISO 639-3, which the crate uses, to ISO 639-1, which BCP 47 prefers.
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
            detect_language(&mut entry);
            assert_eq!(entry.lang.as_deref(), want, "{text}");
        }
    }
}
