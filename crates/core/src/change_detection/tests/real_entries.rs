//! Real entries that could be taken for known or old ones.

use std::collections::HashMap;

use super::*;

#[test]
fn h15_what_comes_out_of_the_middle_of_a_document_is_no_news() {
    // Documents of twelve entries without dates, of which both ends are read: four and four.
    let ends = |first: std::ops::Range<usize>, last: std::ops::Range<usize>| {
        let gap = Some(first.len());
        FeedDocument { gap, ..document(first.chain(last).map(|n| nth(n, None)).collect()) }
    };
    let before = known(&ends(0..4, 8..12));
    #[rustfmt::skip]
    let cases = [
        ("two more at the end",          ends(0..4, 10..14),   "KKKKKKNN"),
        ("and two less at the other",    ends(2..6, 10..14),   "KKOOKKNN"),
        ("two more at the beginning",    ends(98..102, 8..12), "NNNNKKKK"),
        ("one end is new altogether",    ends(0..4, 50..54),   "KKKKNNNN"),
        ("moved by two",                 ends(0..4, 6..10),    "KKKKOOKK"),
    ];
    for (why, after, want) in cases {
        assert_eq!(letters(&classify(&after, &before, &standing(), at(0))), want, "{why}");
    }
}

/// Returns a letter for each entry of each document that was fetched after the first.
fn followed(documents: Vec<Vec<Entry>>, standing: &Baseline) -> Vec<String> {
    let first = document(documents[0].clone());
    let named = first.candidates.iter().zip(1..).flat_map(|(candidate, at)| {
        candidate.keys().map(move |key| (key, known_entry(candidate, at)))
    });
    let (mut known, mut standing) = (named.collect::<HashMap<_, _>>(), standing.clone());
    let rest = documents[1..].iter().map(|entries| {
        let document = document(entries.clone());
        let known_now = Known::from_iter(known.clone());
        let changes = classify(&document, &known_now, &standing, at(0));
        standing.id_changes = changes.id_changes;
        learn(&mut known, &document, &changes);
        letters(&changes)
    });
    rest.collect()
}

/// Adds what the store remembers of a classified document.
fn learn(known: &mut HashMap<EntryKey, KnownEntry>, document: &FeedDocument, changes: &ChangeSet) {
    for (candidate, verdict) in document.candidates.iter().zip(&changes.verdicts) {
        let fresh = known_entry(candidate, known.len() as i64 + 1);
        match verdict {
            EntryChange::New(_) => {
                known.extend(candidate.keys().map(|key| (key, fresh.clone())));
            }
            EntryChange::Learnt(entry) => {
                known.insert(candidate.id, KnownEntry { is_alias: true, ..entry.clone() });
            }
            _ => {}
        }
    }
}

#[test]
fn h16_an_id_that_the_publisher_keeps_is_an_entry() {
    let beacon = |n: usize| entry(&format!("urn:b:{n}"), "https://a.test/up", "up", None);
    let alone =
        |numbers: std::ops::Range<usize>| numbers.map(|n| vec![beacon(n)]).collect::<Vec<_>>();
    let announced = Baseline { is_announced: true, ..standing() };
    let unreliable = Baseline { id_changes: 10, ..standing() };
    assert_eq!(followed(alone(0..7), &standing()).concat(), "NNNNNN", "six ids, each alone");
    assert_eq!(followed(alone(0..30), &announced).concat(), "N".repeat(29), "announced");
    let letters = followed(alone(0..30), &standing()).concat();
    assert_eq!(letters, "N".repeat(10) + &"R".repeat(19), "an id for each fetch");
    assert_eq!(followed(alone(0..3), &unreliable).concat(), "RR", "as is known");
    let both =
        followed(vec![vec![beacon(0)], vec![beacon(1)], vec![beacon(0), beacon(1)]], &unreliable);
    assert_eq!(both.concat(), "RKN", "both at once are two");

    // Beside an entry that keeps its id.
    let beside = |n: usize| vec![nth(1, None), beacon(n)];
    assert_eq!(followed((0..3).map(beside).collect(), &standing()).concat(), "KNKN");
    // Entries that all have other ids, twice.
    let all = |id: &'static str| {
        (0..3)
            .map(move |n| Entry { id: format!("urn:{id}:{n}"), ..nth(n, None) })
            .collect::<Vec<_>>()
    };
    assert_eq!(followed(vec![all("a"), all("b"), all("c")], &standing()).concat(), "RRRRRR");
    // Some of them at each fetch: the first ten are sent.
    let some = |id: &'static str| {
        let random = (0..12).map(move |n| Entry { id: format!("urn:{id}:{n}"), ..nth(n, None) });
        random.chain([nth(99, None)]).collect::<Vec<_>>()
    };
    let letters = followed(vec![some("a"), some("b"), some("c")], &standing());
    assert_eq!(letters, ["NNNNNNNNNNNNK", "RRRRRRRRRRRRK"]);
}

#[test]
fn h16_a_page_that_all_entries_are_about_does_not_make_them_one() {
    let stations = |hour: i64, text: &str| {
        let of = |n: usize| Entry {
            title: Some(Text::plain(format!("Station {n}"))),
            ..entry(
                &format!("urn:{hour}:{n}"),
                &format!("https://a.test/{n}"),
                &format!("{text} {n}"),
                Some(hour),
            )
        };
        (0..6).map(of).collect::<Vec<_>>()
    };
    assert_eq!(classified(stations(-9, "7 degrees"), stations(0, "8 degrees")), "NNNNNN");
    assert_eq!(classified(stations(-9, "7 degrees"), stations(-2, "edited")), "RRRRRR", "moved");
}
