//! Names of months and weekdays in the languages of feeds.
//!
//! A month is recognized by a stem, so that full, abbreviated and inflected forms need one row:
//! `sty` is `styczeń`, `stycznia` and `sty.`. The longest matching stem wins: `cervenc` (Czech
//! July) before `cerven` (June). Stems are spelled as `fold` leaves them. Where languages conflict,
//! the one with more feeds wins: `listopad` is November (Polish and Czech), not October (Croatian).

/// The stems, month by month. Languages whose stems are already listed (German, Swedish, Slovene
/// and others) add nothing.
#[rustfmt::skip]
const STEMS: [&[&str]; 12] = [
    &["jan", "jaan", "ene", "gen", "ian", "xan", "sty", "oca", "tammi", "led", "sijec", "saus",
      "янв", "яну", "јан", "січ", "ιαν", "يناير", "ינו"],
    &["feb", "fev", "febr", "lut", "sub", "helm", "unor", "velj", "vas", "veeb",
      "фев", "феб", "лют", "φεβ", "فبراير", "פבר"],
    &["mar", "mrt", "mrz", "maa", "mac", "brez", "ozuj", "kov",
      "мар", "бер", "μαρ", "μαω", "مارس", "מרץ"],
    &["apr", "abr", "avr", "kwi", "nis", "huht", "dub", "tra", "bal",
      "апр", "кві", "απρ", "ابريل", "אפר"],
    &["may", "mai", "maj", "mei", "mag", "touk", "kve", "svi", "geg",
      "маи", "мая", "мај", "тра", "μαι", "مايو", "מאי"],
    &["jun", "juin", "juun", "giu", "iun", "xun", "cze", "haz", "kesa", "cerven", "cervn", "lipanj", "lipnj", "birz",
      "июн", "юни", "јун", "чер", "ιουν", "ιον", "يونيو", "יונ"],
    &["jul", "juil", "juul", "lug", "iul", "xul", "lip", "liep", "tem", "hein", "cervenc", "cervenec", "srpanj", "srpnj",
      "июл", "юли", "јул", "лип", "ιουλ", "ιολ", "يوليو", "יול"],
    &["aug", "ago", "aou", "agu", "agt", "ags", "avg", "sie", "elo", "srp", "kolov", "rugp",
      "авг", "сер", "αυγ", "اغسطس", "אוג"],
    &["sep", "set", "szept", "wrz", "eyl", "syys", "zar", "ruj", "rugs",
      "сен", "сеп", "вер", "σεπ", "سبتمبر", "ספט"],
    &["oct", "okt", "ott", "out", "paz", "eki", "loka", "rij", "spal",
      "окт", "жов", "οκτ", "اكتوبر", "אוק"],
    &["nov", "noi", "lis", "kas", "marras", "stud", "lapk",
      "ноя", "ное", "нов", "лис", "νοε", "نوفمبر", "נוב"],
    &["dec", "dic", "dez", "des", "det", "gru", "ara", "joul", "pro",
      "дек", "дец", "гру", "δεκ", "ديسمبر", "דצמ"],
];

const ENGLISH: &[u8; 36] = b"janfebmaraprmayjunjulaugsepoctnovdec";

/// Returns the month, 1 to 12, that `word` names in any of the languages.
pub(super) fn month(word: &str) -> Option<u32> {
    if let Some(month) = english(word) {
        return Some(month);
    }
    if is_weekday(word) {
        return None; // most dates begin with a digit, and no stem does
    }
    let mut best = (0, None);
    for (stems, month) in STEMS.iter().zip(1..) {
        for stem in *stems {
            if stem.len() > best.0 && starts_with(word, stem) {
                best = (stem.len(), Some(month));
            }
        }
    }
    best.1
}

/// Returns whether `word` is an English weekday, in full or abbreviated.
pub(super) fn is_weekday(word: &str) -> bool {
    ["mon", "tue", "wed", "thu", "fri", "sat", "sun"].iter().any(|stem| starts_with(word, stem))
}

/// Returns whether `word` is without meaning between the parts of a date: articles and prepositions
/// ("5 de enero de 2004"), and the endings of ordinals ("5th", "1er").
pub(super) fn is_filler(word: &str) -> bool {
    const FILLERS: [&str; 21] = [
        "st", "nd", "rd", "th", "er", "e", "o", "a", "re", "of", "the", "de", "del", "d", "di",
        "den", "le", "el", "thang", "го", "ngay",
    ];
    FILLERS.iter().any(|filler| word.eq_ignore_ascii_case(filler))
}

/// Returns the month of an English three-letter abbreviation without searching the table.
fn english(word: &str) -> Option<u32> {
    let word: [u8; 3] = word.as_bytes().try_into().ok()?;
    let at = ENGLISH.chunks_exact(3).position(|name| name.eq_ignore_ascii_case(&word))?;
    u32::try_from(at + 1).ok()
}

fn starts_with(word: &str, stem: &str) -> bool {
    word.as_bytes()
        .get(..stem.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(stem.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::super::fold::fold;
    use super::*;

    #[test]
    fn every_month_is_known_in_every_language_we_claim() {
        #[rustfmt::skip]
        let languages = [
            ("English",    "January February March April May June July August September October November December"),
            ("German",     "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"),
            ("Austrian",   "Jänner Feber Mrz Apr. Mai Juni Juli Aug. Sept. Okt. Nov. Dez."),
            ("French",     "janvier février mars avril mai juin juillet août septembre octobre novembre décembre"),
            ("short",      "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc."),
            ("Spanish",    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"),
            ("Catalan",    "gener febrer març abril maig juny juliol agost setembre octubre novembre desembre"),
            ("Portuguese", "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro"),
            ("Italian",    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre"),
            ("Romanian",   "ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie"),
            ("Dutch",      "januari februari maart april mei juni juli augustus september oktober november december"),
            ("Danish",     "januar februar marts april maj juni juli august september oktober november december"),
            ("Norwegian",  "januar februar mars april mai juni juli august september oktober november desember"),
            ("Swedish",    "januari februari mars april maj juni juli augusti september oktober november december"),
            ("Icelandic",  "janúar febrúar mars apríl maí júní júlí ágúst september október nóvember desember"),
            ("Finnish",    "tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta heinäkuuta elokuuta syyskuuta lokakuuta marraskuuta joulukuuta"),
            ("Estonian",   "jaanuar veebruar märts aprill mai juuni juuli august september oktoober november detsember"),
            ("Latvian",    "janvāris februāris marts aprīlis maijs jūnijs jūlijs augusts septembris oktobris novembris decembris"),
            ("Lithuanian", "sausio vasario kovo balandžio gegužės birželio liepos rugpjūčio rugsėjo spalio lapkričio gruodžio"),
            ("Polish",     "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia"),
            ("short",      "sty lut mar kwi maj cze lip sie wrz paź lis gru"),
            ("Czech",      "ledna února března dubna května června července srpna září října listopadu prosince"),
            ("Hungarian",  "január február március április május június július augusztus szeptember október november december"),
            ("Turkish",    "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık"),
            ("Indonesian", "Januari Februari Maret April Mei Juni Juli Agustus September Oktober November Desember"),
            ("Russian",    "января февраля марта апреля мая июня июля августа сентября октября ноября декабря"),
            ("short",      "янв фев мар апр май июн июл авг сен окт ноя дек"),
            ("Ukrainian",  "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня"),
            ("Bulgarian",  "януари февруари март април май юни юли август септември октомври ноември декември"),
            ("Serbian",    "јануар фебруар март април мај јун јул август септембар октобар новембар децембар"),
            ("Greek",      "Ιανουαρίου Φεβρουαρίου Μαρτίου Απριλίου Μαΐου Ιουνίου Ιουλίου Αυγούστου Σεπτεμβρίου Οκτωβρίου Νοεμβρίου Δεκεμβρίου"),
            ("short",      "Ιαν Φεβ Μάρ Απρ Μάι Ιούν Ιούλ Αύγ Σεπ Οκτ Νοέ Δεκ"),
            ("Arabic",     "يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر"),
            ("Hebrew",     "ינואר פברואר מרץ אפריל מאי יוני יולי אוגוסט ספטמבר אוקטובר נובמבר דצמבר"),
        ];
        for (language, names) in languages {
            for (name, want) in names.split(' ').zip(1..) {
                let folded = fold(name.trim_end_matches('.'));
                assert_eq!(month(&folded), Some(want), "{language}: {name}");
            }
        }
    }

    #[test]
    fn other_words_are_no_month() {
        for word in ["", "J", "ja", "zzz", "Monday", "GMT", "ж", "feira"] {
            assert_eq!(month(word), None, "{word}");
        }
    }
}
