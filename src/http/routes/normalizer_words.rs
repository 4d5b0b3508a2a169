//! The words of `docs/normalizer.md` for what the normalizer did with a document, by their codes.

use std::collections::HashMap;
use std::sync::LazyLock;

const DOCUMENT: &str = include_str!("../../../docs/normalizer.md");
/// What the head of the table of the ways to change a field begins with.
const WAYS: &str = "\n| how | pass | what was done |\n";

/// What was wrong, by the code of the repair: the second cell of the rows of the table.
static CAUSES: LazyLock<HashMap<&str, String>> = LazyLock::new(|| {
    let (_, repairs) = DOCUMENT.split_once("\n## Repairs\n").unwrap_or_default();
    rows(repairs).filter_map(|(code, row)| Some((code, plain(row.split(" | ").next()?)))).collect()
});

/// What was done with a field, by the way in which it was changed: the third cell.
static WAYS_OF_CHANGE: LazyLock<HashMap<&str, String>> = LazyLock::new(|| {
    let (_, ways) = DOCUMENT.split_once(WAYS).unwrap_or_default();
    let ways = ways.split("\n\n").next().unwrap_or_default();
    let words = |row: &str| Some(plain(row.split(" | ").nth(1)?.trim_end_matches(" |")));
    rows(ways).filter_map(|(how, row)| Some((how, words(row)?))).collect()
});

/// Returns the code and the rest of each row of a table.
fn rows(table: &str) -> impl Iterator<Item = (&str, &str)> {
    table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
}

fn plain(cell: &str) -> String {
    cell.replace('`', "")
}

/// Returns what was wrong with a document in which a repair has this code, or the code if that is not known.
pub(crate) fn cause(code: &str) -> &str {
    CAUSES.get(code).map_or(code, String::as_str)
}

/// Returns what was done with a field that was changed in this way, or the word if that is not known.
pub(crate) fn change_of_field(how: &str) -> &str {
    WAYS_OF_CHANGE.get(how).map_or(how, String::as_str)
}

/// Returns a line that lists the codes of repairs, as in the status of a feed, with their words instead.
pub(crate) fn in_words(line: &str) -> String {
    let parts = line.split("; ").map(|part| {
        let listed =
            part.split_once(": ").filter(|(kind, _)| matches!(*kind, "repaired" | "adapted"));
        let Some((kind, codes)) = listed else { return part.to_owned() };
        let causes: Vec<&str> = codes.split(", ").map(cause).collect();
        format!("{kind}: {}", causes.join(", "))
    });
    parts.collect::<Vec<String>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedgate_feed::repair::RepairCode;

    #[test]
    fn every_code_has_words() {
        for code in RepairCode::ALL {
            let words = cause(code.as_str());
            assert!(words.contains(' ') && !words.contains(['`', '|', '[']), "{code}: {words}");
        }
        assert_eq!(cause("id_not_an_iri"), "an id is not an IRI");
        assert_eq!(cause("no_such_code"), "no_such_code");
    }

    #[test]
    fn every_way_of_change_has_words() {
        assert_eq!(WAYS_OF_CHANGE.len(), 24);
        assert_eq!(change_of_field("from_published"), "the date of publication");
        assert_eq!(change_of_field("left_empty"), "Atom requires the field, but there is no value");
        assert_eq!(change_of_field("no_such_way"), "no_such_way");
    }

    #[test]
    fn codes_in_a_line_become_words() {
        let line =
            "99 bytes, rss2.0; repaired: bare_ampersand; adapted: id_not_an_iri, author_missing";
        let words = in_words(line);
        assert!(words.starts_with("99 bytes, rss2.0; repaired: "), "{words}");
        assert!(words.contains("adapted: an id is not an IRI, "), "{words}");
        assert!(!words.contains('_'), "{words}");
        assert_eq!(in_words("404 Not Found"), "404 Not Found");
    }
}
