//! Estimates about a feed for its status: its popularity, and the likelihood that it is
//! pornographic.
//!
//! The estimates are simple formulas, so that a number can be explained
//! (`docs/contributing/polling.md`, "What the status says"). The third estimate, how likely a feed
//! is broken, is [`feedgate_feed::repair::bozo_rank`].

use std::collections::BTreeSet;

use feedgate_feed::model::{Entry, Feed};

/// Words that occur in hardly any other text, in the most common languages.
const EXPLICIT: &[&str] = &[
    "blowjob",
    "blowjobs",
    "bukkake",
    "camgirl",
    "camgirls",
    "creampie",
    "cumshot",
    "cumshots",
    "deepthroat",
    "fisting",
    "gangbang",
    "handjob",
    "hardcoreporn",
    "hentai",
    "milf",
    "milfs",
    "porn",
    "porno",
    "pornos",
    "pornstar",
    "pornstars",
    "rimjob",
    "sexcam",
    "sexvideo",
    "threesome",
    "xxx",
    "pornografie",
    "pornographie",
    "pornografia",
    "порно",
    "ポルノ",
];

/// Words that are frequent in such texts, but occur in others too; two different ones count as a
/// sign.
const SUGGESTIVE: &[&str] = &[
    "anal", "ass", "babe", "babes", "bondage", "boobs", "busty", "cock", "cum", "dildo", "erotic",
    "erotica", "escort", "fetish", "fuck", "fucking", "horny", "lesbian", "naked", "nsfw", "nude",
    "nudes", "orgasm", "orgy", "pussy", "sex", "sexy", "slut", "strip", "teens", "tits", "webcam",
];

/// The number of neutral entries added before the share is computed, so that a feed with one entry
/// is not judged by it.
const DOUBTS: f64 = 2.0;

/// The popularity of a resource with this number of active subscriptions: `ln(1 + subscribers)`,
/// which starts at 0.
pub fn popularity(subscribers: u32) -> f64 {
    f64::from(subscribers).ln_1p()
}

/// The share of explicit entries, after two neutral entries have been added. An entry is explicit
/// if its title, summary or categories contain one explicit word or two different suggestive ones.
pub fn porn(feed: &Feed) -> f64 {
    let hits = feed.entries.iter().filter(|entry| speaks_of_porn(entry)).count();
    hits as f64 / (feed.entries.len() as f64 + DOUBTS)
}

fn speaks_of_porn(entry: &Entry) -> bool {
    let texts = [entry.title.as_ref(), entry.summary.as_ref()].into_iter().flatten();
    let texts = texts.map(feedgate_feed::model::Text::to_plain);
    let words = entry.categories.iter().map(|category| category.term.clone());
    let mut suggestive = BTreeSet::new();
    for text in texts.chain(words) {
        let folded = text.to_lowercase();
        for word in folded.split(|c: char| !c.is_alphanumeric()) {
            if EXPLICIT.contains(&word) {
                return true;
            }
            if let Some(word) = SUGGESTIVE.iter().find(|listed| **listed == word) {
                suggestive.insert(*word);
            }
        }
    }
    suggestive.len() >= 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedgate_feed::model::{Category, Text};

    fn entry(title: &str, category: &str) -> Entry {
        let category = Category { term: category.to_owned(), ..Category::default() };
        Entry { title: Some(Text::plain(title)), categories: vec![category], ..Entry::default() }
    }

    #[test]
    fn the_porn_rank_is_a_share_of_entries() {
        #[rustfmt::skip]
        let cases = [
            ("nothing published",                 vec![],                                      0.0),
            ("one entry proves little",           vec![entry("Free XXX videos", "")],          1.0 / 3.0),
            ("eight of eight",                    vec![entry("Hentai", ""); 8],                0.8),
            ("a town in England",                 vec![entry("Essex and Scunthorpe", "")],     0.0),
            ("one suggestive word",               vec![entry("Sex education", "school")],      0.0),
            ("two of them",                       vec![entry("Sexy nudes", "")],               1.0 / 3.0),
            ("the same one twice is one",         vec![entry("sex, sex", "sex")],              0.0),
            ("the categories count",              vec![entry("New", "Porno")],                 1.0 / 3.0),
        ];
        for (why, entries, want) in cases {
            let feed = Feed { entries, ..Feed::default() };
            assert_eq!(porn(&feed), want, "{why}");
        }
    }

    #[test]
    fn popularity_starts_at_nothing_and_grows() {
        assert_eq!(popularity(0), 0.0);
        assert!(popularity(1) < popularity(2));
    }
}
