//! The names of months, in the languages in which feeds are dated.

/// Beginnings of names, in lower case and without accents where the language has them;
/// the first that fits counts, so longer ones stand before shorter ones.
#[rustfmt::skip]
const BEGINNINGS: [(&str, u32); 101] = [
    // English, and with it most of what is Germanic or Romance
    ("jan", 1), ("feb", 2), ("mar", 3), ("apr", 4), ("may", 5), ("jun", 6), ("jul", 7), ("aug", 8),
    ("sep", 9), ("oct", 10), ("nov", 11), ("dec", 12),
    // German, Dutch, Nordic
    ("mrz", 3), ("maerz", 3), ("mai", 5), ("maj", 5), ("mei", 5), ("mrt", 3), ("maart", 3), ("okt", 10), ("dez", 12),
    ("des", 12), ("tammi", 1), ("helmi", 2), ("maalis", 3), ("huhti", 4), ("touko", 5), ("kesa", 6),
    ("heina", 7), ("elo", 8), ("syys", 9), ("loka", 10), ("marras", 11), ("joulu", 12),
    // French
    ("fev", 2), ("fevr", 2), ("avr", 4), ("juin", 6), ("juil", 7), ("aou", 8),
    // Italian, Spanish, Portuguese, Romanian, Catalan
    ("gen", 1), ("ene", 1), ("ian", 1), ("abr", 4), ("mag", 5), ("giu", 6), ("lug", 7), ("ago", 8),
    ("set", 9), ("ott", 10), ("out", 10), ("dic", 12), ("iun", 6), ("iul", 7), ("noi", 11),
    // Hungarian
    ("szept", 9), ("okto", 10),
    // Polish, Czech
    ("sty", 1), ("lut", 2), ("kwi", 4), ("cze", 6), ("lip", 7), ("sie", 8), ("wrz", 9), ("paz", 10),
    ("lis", 11), ("gru", 12), ("led", 1), ("uno", 2), ("bre", 3), ("dub", 4), ("kve", 5), ("srp", 8),
    ("zar", 9), ("rij", 10), ("pro", 12),
    // Greek
    ("ιαν", 1), ("φεβ", 2), ("μαρ", 3), ("μαω", 3), ("απρ", 4), ("μαι", 5), ("ιουν", 6), ("ιον", 6),
    ("ιουλ", 7), ("ιολ", 7), ("αυγ", 8), ("σεπ", 9), ("οκτ", 10), ("νοε", 11), ("δεκ", 12),
    // Russian and its neighbours
    ("янв", 1), ("фев", 2), ("мар", 3), ("апр", 4), ("мая", 5), ("май", 5), ("июн", 6), ("июл", 7),
    ("авг", 8), ("сен", 9),
];

/// More of them: the table above is as long as a table should be.
const MORE: [(&str, u32); 5] = [("окт", 10), ("ноя", 11), ("дек", 12), ("jui", 7), ("ocak", 1)];

/// The month a word names.
pub(super) fn month(word: &str) -> Option<u32> {
    let plain = plain(word);
    let mut known = BEGINNINGS.iter().chain(&MORE);
    known.find(|(beginning, _)| plain.starts_with(beginning)).map(|(_, month)| *month)
}

/// In lower case, without the accents of Latin and Greek letters.
fn plain(word: &str) -> String {
    let lower = word.chars().flat_map(char::to_lowercase);
    lower
        .map(|c| match c {
            'á' | 'à' | 'â' | 'ä' | 'ã' => 'a',
            'é' | 'è' | 'ê' | 'ë' | 'ě' => 'e',
            'í' | 'ì' | 'î' => 'i',
            'ó' | 'ò' | 'ô' | 'ö' => 'o',
            'ú' | 'ů' | 'ù' | 'û' | 'ü' => 'u',
            'ź' | 'ż' | 'ž' => 'z',
            'ř' => 'r',
            'ά' => 'α',
            'έ' => 'ε',
            'ί' | 'ϊ' | 'ΐ' => 'ι',
            'ό' => 'ο',
            'ύ' => 'υ',
            'ώ' => 'ω',
            _ => c,
        })
        .collect()
}
