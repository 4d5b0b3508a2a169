//! Tests of entries that are told apart by their dates.

use super::*;

#[test]
fn n03_a_date_of_update_that_is_now_one_of_publication_is_the_same() {
    let renamed = |id: &str| entry(id, "https://a.test/1", "ebb", Some(-9));
    let document = document(vec![renamed("urn:x:new")]);
    let mut old = document.candidates[0].clone();
    (old.id, old.updated, old.published) = (EntryKey::from_id("urn:x:old"), old.published, None);
    let entry = known_entry(&old, 1);
    let known = old.keys().map(|key| (key, entry.clone())).collect();
    assert_eq!(letters(&classify(&document, &known, &standing(), at(0))), "R");
}

#[test]
fn n12_a_page_of_a_sitemap_is_updated_with_its_date() {
    let page = |updated: i64| {
        let mut page = entry("https://a.test/1", "https://a.test/1", "", None);
        (page.title, page.content, page.date_assumed) = (None, None, false);
        page.updated = Some(at(updated).fixed_offset());
        let feed = Feed { format: FeedFormat::Sitemap, entries: vec![page], ..Feed::default() };
        FeedDocument::from_feed(&feed, true, None, at(0))
    };
    let before = known(&page(-9));
    assert_eq!(letters(&classify(&page(-9), &before, &standing(), at(0))), "K");
    assert_eq!(letters(&classify(&page(-1), &before, &standing(), at(0))), "U");
}
