//! Tests of pages that are one article.

use super::*;

#[test]
fn n07_a_changed_article_is_sent_like_a_changed_page() {
    let article = |text: &str, describes_page: bool| {
        let entry = entry("https://a.test/1", "https://a.test/1", text, Some(-9));
        document(vec![Entry { describes_page, ..entry }])
    };
    for (describes_page, audience, new) in
        [(true, Audience::Everybody, 1), (false, Audience::Askers, 0)]
    {
        let before = article("tides", describes_page);
        let mut held = known_entry(&before.candidates[0], 1);
        (held.revised, held.revised_at) = (MOST_UPDATES - 1, Some(at(-1)));
        let known: Known = std::iter::once((before.candidates[0].id, held.clone())).collect();
        let after = article("ebb", describes_page);
        let changes = classify(&after, &known, &standing(), at(0));
        assert_eq!(changes.verdicts, [EntryChange::Updated(held.clone(), audience)]);
        assert_eq!((changes.new_records(), changes.updated()), (new, 1));

        held.revised = MOST_UPDATES;
        let known: Known = std::iter::once((before.candidates[0].id, held.clone())).collect();
        let changes = classify(&after, &known, &standing(), at(0));
        let is_sent = matches!(changes.verdicts[0], EntryChange::Updated(_, Audience::Everybody));
        assert_eq!(is_sent, describes_page, "an article has no limit");
    }
}
