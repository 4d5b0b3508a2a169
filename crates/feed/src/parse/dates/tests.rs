//! Complete dates as they occur in feeds. Each row is a form, the expected instant, and the reason
//! for the row. The single parts are tested in the files that read them.

use chrono::DateTime;
use chrono::FixedOffset;
use chrono::SecondsFormat;
use proptest::prelude::*;

use super::parse;

fn check(cases: &[(&str, Option<&str>, &str)]) {
    for (text, want, reason) in cases {
        let got = parse(text).map(|at| at.to_rfc3339_opts(SecondsFormat::AutoSi, true));
        assert_eq!(got.as_deref(), *want, "{reason}: {text}");
    }
}

#[test]
fn mail_dates_are_read_with_all_their_abuses() {
    #[rustfmt::skip]
    check(&[
        ("Mon, 05 Jan 2004 15:04:05 GMT",          Some("2004-01-05T15:04:05Z"),      "RFC 1123"),
        ("Mon, 05 Jan 2004 15:04:05 -0500",        Some("2004-01-05T15:04:05-05:00"), "RFC 2822"),
        ("Mon, 05 Jan 04 15:04:05 EST",            Some("2004-01-05T15:04:05-05:00"), "RFC 822"),
        ("Monday, 05-Jan-04 15:04:05 GMT",         Some("2004-01-05T15:04:05Z"),      "RFC 850"),
        ("5 Jan 2004 15:04:05 +0100",              Some("2004-01-05T15:04:05+01:00"), "no weekday"),
        ("Fri, 05 Jan 2004 15:04:05 GMT",          Some("2004-01-05T15:04:05Z"),      "the wrong weekday"),
        ("Xyz, 05 Jan 2004 15:04:05 GMT",          Some("2004-01-05T15:04:05Z"),      "no weekday at all"),
        ("Monday, 5 January 2004 15:04:05 GMT",    Some("2004-01-05T15:04:05Z"),      "full names"),
        ("Mon,05 Jan 2004 15:04:05 GMT",           Some("2004-01-05T15:04:05Z"),      "no space after the comma"),
        ("Mon 05 Jan 2004 15:04:05 GMT",           Some("2004-01-05T15:04:05Z"),      "no comma"),
        ("Mon , 5 Jan, 2004, 15:04 GMT",           Some("2004-01-05T15:04:00Z"),      "commas everywhere, no seconds"),
        ("Mon, 5 Jan 2004 5:4:3 GMT",              Some("2004-01-05T05:04:03Z"),      "single digits"),
        ("Mon, 05 Jan 2004 15:04:05",              Some("2004-01-05T15:04:05Z"),      "no zone"),
        ("Mon, 05 Jan 2004 15 -0700",              Some("2004-01-05T15:00:00-07:00"), "only the hour"),
        ("Mon, 05 Jan 2004",                       Some("2004-01-05T00:00:00Z"),      "no time"),
        ("January 2004",                           Some("2004-01-01T00:00:00Z"),      "no day"),
        ("Mon, Jan 5 2004 15:04:05 GMT",           Some("2004-01-05T15:04:05Z"),      "month in front"),
        ("Jan 5th, 2004 3:04 PM",                  Some("2004-01-05T15:04:00Z"),      "American"),
        ("Jan 05 2004 03:04:05PM",                 Some("2004-01-05T15:04:05Z"),      "glued"),
        ("January 5, 2004, 3:04 p.m.",             Some("2004-01-05T15:04:00Z"),      "dotted"),
        ("Mon, 5 Jan 2004 12:04 AM EST",           Some("2004-01-05T00:04:00-05:00"), "just after midnight"),
        ("Mon, 5 Jan 2004 12:04 PM",               Some("2004-01-05T12:04:00Z"),      "just after noon"),
        ("Mon, 5 Jan 2004 15:04 PM",               Some("2004-01-05T15:04:00Z"),      "said twice"),
        ("05 Monday, Jan 2004 15:04",              Some("2004-01-05T15:04:00Z"),      "the weekday inside"),
        ("Mon, 05 Jan 104 15:04:05 GMT",           Some("2004-01-05T15:04:05Z"),      "the year 2000 bug, RFC 2822 4.3"),
        ("Sun, 05 Jan 86 15:04:05 GMT",            Some("1986-01-05T15:04:05Z"),      "two digits, last century"),
        ("Tue, 05 Jan 0104 15:04:05 GMT",          Some("0104-01-05T15:04:05Z"),      "four digits are meant"),
        ("Mon, 05 Jan 2004 24:00:00 GMT",          Some("2004-01-06T00:00:00Z"),      "the end of the day"),
        ("Sat, 31 Dec 2005 23:59:60 GMT",          Some("2006-01-01T00:00:00Z"),      "a leap second"),
        ("Mon (so soon), 5(th) Jan(uary) 2004 15:04 +0000 (GMT (or so))", Some("2004-01-05T15:04:00Z"), "comments"),
        ("  Mon, 05 Jan 2004\n 15:04:05\tGMT \n",  Some("2004-01-05T15:04:05Z"),      "folded white space"),
        ("Mon, 05 Jan 2004 15 : 04 : 05 GMT",      Some("2004-01-05T15:04:05Z"),      "spaces, RFC 822"),
        ("mon, 05 JAN 2004 15:04:05 gmt",          Some("2004-01-05T15:04:05Z"),      "any case"),
        ("Posted: Mon, 05 Jan 2004",               Some("2004-01-05T00:00:00Z"),      "a word in front"),
        ("Mon, 05&nbsp;Jan 2004 15&#58;04 GMT",    Some("2004-01-05T15:04:00Z"),      "entities left over"),
        ("Mon, 32 Jan 2004 15:04:05 GMT",          None,                              "no such day"),
        ("Tue, 31 Feb 2004 15:04:05 GMT",          Some("2004-03-02T15:04:05Z"),      "two days past February"),
        ("Mon, 00 Jan 2004 15:04:05 GMT",          None,                              "day 0"),
        ("Mon, 05 Jan 2004 25:04:05 GMT",          None,                              "no such hour"),
        ("Mon, 05 Jan 2004 15:04:05:06 GMT",       None,                              "a part too many"),
        ("Mon, 05 Xyz 2004 15:04:05 GMT",          None,                              "no such month"),
        ("Mon, Jan x 2004 15:04:05 GMT",           None,                              "no day"),
        ("Mon, 05 Jan xx 15:04:05 GMT",            None,                              "no year"),
        ("Mon, 05 Jan 15:04:05 GMT",               None,                              "no year, and we do not guess"),
        ("Fri, 31 Dec 9999 23:59:59 -0100",        None,                              "the year 10000 in UTC"),
    ]);
}

#[test]
fn zones_are_read_wherever_and_however_they_stand() {
    #[rustfmt::skip]
    check(&[
        ("Mon, 05 Jan 2004 15:04:05 UT",            Some("2004-01-05T15:04:05Z"),      "RFC 822"),
        ("Mon, 05 Jan 2004 15:04:05 Z",             Some("2004-01-05T15:04:05Z"),      "military"),
        ("Mon, 05 Jan 2004 15:04:05 A",             Some("2004-01-05T15:04:05-01:00"), "military, RFC 822's sign"),
        ("Mon, 05 Jan 2004 15:04:05 PT",            Some("2004-01-05T15:04:05-08:00"), "Disney's"),
        ("Mon, 05 Jan 2004 15:04:05MSK",            Some("2004-01-05T15:04:05+03:00"), "glued"),
        ("Mon, 05 Jan 2004 15:04:05 CEST",          Some("2004-01-05T15:04:05+02:00"), "European"),
        ("Mon, 05 Jan 2004 15:04:05 JST",           Some("2004-01-05T15:04:05+09:00"), "Asian"),
        ("Mon, 05 Jan 2004 15:04:05 GMT+0200",      Some("2004-01-05T15:04:05+02:00"), "relative to GMT"),
        ("Mon, 05 Jan 2004 15:04:05 UTC-3",         Some("2004-01-05T15:04:05-03:00"), "relative to UTC"),
        ("Mon, 05 Jan 2004 15:04:05 GMT-01:30",     Some("2004-01-05T15:04:05-01:30"), "with a colon"),
        ("Mon, 05 Jan 2004 15:04:05 EST -0500",     Some("2004-01-05T15:04:05-05:00"), "both"),
        ("Mon, 05 Jan 2004 15:04:05 -0700 MST",     Some("2004-01-05T15:04:05-07:00"), "both, turned round"),
        ("Mon, 05 Jan 2004 15:04:05 +0000 PST",     Some("2004-01-05T15:04:05Z"),      "figures win"),
        ("Mon, 05 Jan 2004 15:04:05 --0700",        Some("2004-01-05T15:04:05-07:00"), "a sign too many"),
        ("Mon, 05 Jan 2004 15:04:05 0200",          Some("2004-01-05T15:04:05+02:00"), "the plus was taken for a space"),
        ("Mon, 05 Jan 2004 15:04:05 00",            Some("2004-01-05T15:04:05Z"),      "only the hours of UTC"),
        ("Mon, 05 Jan 2004 15:04:05 Etc/GMT",       Some("2004-01-05T15:04:05Z"),      "a region"),
        ("Mon, 05 Jan 2004 15:04:05 Etc/GMT+5",     Some("2004-01-05T15:04:05-05:00"), "POSIX's sign"),
        ("Mon, 05 Jan 2004 15:04:05 é/e",           Some("2004-01-05T15:04:05Z"),      "a slash behind another script"),
        ("Mon, 05 Jan 2004 15:04:05 America/Lima",  Some("2004-01-05T15:04:05Z"),      "a region we do not resolve"),
        ("Mon Jan 05 2004 15:04:05 GMT-0800 (PST)", Some("2004-01-05T15:04:05-08:00"), "JavaScript"),
        ("Mon, 05 Jan 2004 15:04:05 (PST)",         Some("2004-01-05T15:04:05-08:00"), "only in a comment"),
        ("Mon, 05 Jan 2004 15:04:05 QQQ",           Some("2004-01-05T15:04:05Z"),      "no such zone"),
        ("Mon, 05 Jan 2004 15:04:05 −0500",         Some("2004-01-05T15:04:05-05:00"), "a typographic minus"),
        ("Mon, 05 Jan 2004 15:04:05 +zz:00",        None,                              "no offset"),
        ("Mon, 05 Jan 2004 15:04:05 +00:zz",        None,                              "half an offset"),
        ("Mon, 05 Jan 2004 15:04:05 -9999",         None,                              "no such offset"),
    ]);
}

#[test]
fn iso_dates_are_read_in_full_and_in_part() {
    #[rustfmt::skip]
    check(&[
        ("2004-01-05T15:04:05Z",          Some("2004-01-05T15:04:05Z"),          "RFC 3339"),
        ("2004-01-05t15:04:05z",          Some("2004-01-05T15:04:05Z"),          "small letters"),
        ("2004-01-05T15:04:05.25+01:00",  Some("2004-01-05T15:04:05.250+01:00"), "a fraction"),
        ("2004-01-05T15:04:05,25-0800",   Some("2004-01-05T15:04:05.250-08:00"), "a comma, no colon"),
        ("2004-01-05T15:04:05.12345678901Z", Some("2004-01-05T15:04:05.123456789Z"), "finer than a nanosecond"),
        ("2004-01-05T15:04:05+01",        Some("2004-01-05T15:04:05+01:00"),     "only hours of offset"),
        ("2004-01-05T15:04+01:00",        Some("2004-01-05T15:04:00+01:00"),     "no seconds"),
        ("2004-01-05T15Z",                Some("2004-01-05T15:00:00Z"),          "only the hour"),
        ("2004-01-05T15:04:05",           Some("2004-01-05T15:04:05Z"),          "no zone"),
        ("2004-01-05 15:04:05 -05:00",    Some("2004-01-05T15:04:05-05:00"),     "spaces"),
        ("2004-01-05 T 15:04:05 -05:00",  Some("2004-01-05T15:04:05-05:00"),     "spaces about the T"),
        ("2004-01-05T 15:04:05-05:00",    Some("2004-01-05T15:04:05-05:00"),     "a space behind the T"),
        ("2004-01-05T15:04:05:-0500",     Some("2004-01-05T15:04:05-05:00"),     "a colon too many"),
        ("2004-01-05T15:04:05Z[UTC]",     Some("2004-01-05T15:04:05Z"),          "Java"),
        ("2004-01-05 at 15:04:05",        Some("2004-01-05T15:04:05Z"),          "a word between"),
        ("2004-01-05+01:00",              Some("2004-01-05T00:00:00+01:00"),     "XML Schema's date"),
        ("2004-01-05Z",                   Some("2004-01-05T00:00:00Z"),          "XML Schema's date, UTC"),
        ("20040105T150405Z",              Some("2004-01-05T15:04:05Z"),          "compact"),
        ("20040105T1504+0100",            Some("2004-01-05T15:04:00+01:00"),     "compact, no seconds"),
        ("20040105150405",                Some("2004-01-05T15:04:05Z"),          "compact, all digits"),
        ("200401051504",                  Some("2004-01-05T15:04:00Z"),          "compact, all digits, no seconds"),
        ("2004-01-05T150405+01:00",       Some("2004-01-05T15:04:05+01:00"),     "half compact"),
        ("2004-01-05",                    Some("2004-01-05T00:00:00Z"),          "a day"),
        ("2004-01",                       Some("2004-01-01T00:00:00Z"),          "a month"),
        ("2004",                          Some("2004-01-01T00:00:00Z"),          "a year"),
        ("2003-W01-3",                    Some("2003-01-01T00:00:00Z"),          "a week date"),
        ("2003W013T15:04Z",               Some("2003-01-01T15:04:00Z"),          "a week date, compact, with time"),
        ("2003-335",                      Some("2003-12-01T00:00:00Z"),          "a day of the year"),
        ("2003335",                       Some("2003-12-01T00:00:00Z"),          "a day of the year, compact"),
        ("03335",                         Some("2003-12-01T00:00:00Z"),          "a day of the year, short"),
        ("04-01-05",                      Some("2004-01-05T00:00:00Z"),          "short year"),
        ("040105",                        Some("2004-01-05T00:00:00Z"),          "short year, compact"),
        ("-0401",                         Some("2004-01-01T00:00:00Z"),          "short year and month"),
        ("-04-01",                        Some("2004-01-01T00:00:00Z"),          "short year and month, dashed"),
        ("2004-001-05T15:04:05+00:00",    Some("2004-01-05T15:04:05Z"),          "Google's zero"),
        ("2004-01-05T24:00:00Z",          Some("2004-01-06T00:00:00Z"),          "the end of the day"),
        ("2004-13-05T15:04:05Z",          None,                                  "no such month"),
        ("2004-01-32",                    None,                                  "no such day"),
        ("2004-01-05T15:61:05Z",          None,                                  "no such minute"),
        ("2004-01-05T15:04:61Z",          None,                                  "no such second"),
        ("01-05T15:04:05-05:00",          None,                                  "no year"),
        ("2004-01-05-07",                 None,                                  "a part too many"),
        ("2004-xx-05",                    None,                                  "no month"),
        ("2004-01-05T15:xx:00Z",          None,                                  "no minute"),
        ("2004-01-05T15:04:00-06:00Text", None,                                  "text behind it"),
        ("004",                           None,                                  "no year"),
        ("0000-00-00 00:00:00",           None,                                  "MySQL's nothing"),
    ]);
}

#[test]
fn what_programs_print_is_read() {
    #[rustfmt::skip]
    check(&[
        ("Mon Jan  5 15:04:05 2004",        Some("2004-01-05T15:04:05Z"),      "asctime"),
        ("Mon Jan  5 15:04:05 MST 2004",    Some("2004-01-05T15:04:05-07:00"), "date(1)"),
        ("Mon Jan 05 15:04:05 -0700 2004",  Some("2004-01-05T15:04:05-07:00"), "Ruby, Twitter"),
        ("2004-01-05 15:04:05.0",           Some("2004-01-05T15:04:05Z"),      "MS SQL"),
        ("2004-01-05 15:04:05 +0100",       Some("2004-01-05T15:04:05+01:00"), "Ruby, git"),
        ("2004-01-05 00:00:00.0 15:04:05.0 -0700", Some("2004-01-05T15:04:05-07:00"), "two columns"),
        ("Jan  5 2004  3:04PM",             Some("2004-01-05T15:04:00Z"),      "T-SQL"),
        ("Mon, 2004/01/05 15:04:05 EST",    Some("2004-01-05T15:04:05-05:00"), "Perforce"),
        ("05/Jan/2004:15:04:05 +0100",      Some("2004-01-05T15:04:05+01:00"), "Apache"),
        ("1/5/2004 3:04:05 PM",             Some("2004-01-05T15:04:05Z"),      "Windows, American"),
        ("01/05/2004 - 15:04",              Some("2004-01-05T15:04:00Z"),      "Drupal, American"),
        ("25/01/2004 15:04",                Some("2004-01-25T15:04:00Z"),      "cannot be American"),
        ("05.01.2004 15:04:05",             Some("2004-01-05T15:04:05Z"),      "dots: the day first"),
        ("05.01.2004 -0700",                Some("2004-01-05T00:00:00-07:00"), "a zone without a time"),
        ("15:04 05.01.2004 -0700",          Some("2004-01-05T15:04:00-07:00"), "the time in front"),
        ("2004/01/05",                      Some("2004-01-05T00:00:00Z"),      "slashes, the year first"),
        ("1073315045",                      Some("2004-01-05T15:04:05Z"),      "seconds since 1970"),
        ("1073315045123",                   Some("2004-01-05T15:04:05.123Z"),  "milliseconds since 1970"),
        ("2159.525972",                     None,                              "some other number"),
        ("insert date here",                None,                              "a template's words"),
        ("now",                             None,                              "not an instant"),
        ("",                                None,                              "nothing"),
    ]);
}

#[test]
fn dates_are_read_in_the_languages_of_feeds() {
    #[rustfmt::skip]
    check(&[
        ("2004년 01월 05일 15:04:05",               Some("2004-01-05T15:04:05+09:00"), "Korean, Onblog"),
        ("2004-01-05 오후 03:04:05",                Some("2004-01-05T15:04:05+09:00"), "Korean, Nate"),
        ("2004-01-05 오전 12:04:05",                Some("2004-01-05T00:04:05+09:00"), "Korean, after midnight"),
        ("2004. 1. 5. 오후 3:04",                   Some("2004-01-05T15:04:00+09:00"), "Korean, dots"),
        ("2004년 1월 5일 15시 4분 5초 GMT",         Some("2004-01-05T15:04:05Z"),      "Korean, but with a zone"),
        ("2004年1月5日(月) 15時04分",               Some("2004-01-05T15:04:00Z"),      "Japanese"),
        ("２００４年１月５日　１５：０４",          Some("2004-01-05T15:04:00Z"),      "full width"),
        ("2004年1月5日 星期一 下午3:04",            Some("2004-01-05T15:04:00Z"),      "Chinese"),
        ("Δευ, 05 Ιαν 2004 15:04:05 EET",           Some("2004-01-05T15:04:05+02:00"), "Greek"),
        ("Τετ, 05 Μαϊ 2004 3:04 μμ",                Some("2004-05-05T15:04:00Z"),      "Greek, afternoon"),
        ("2004-július-5T9:15-05:00",                Some("2004-07-05T09:15:00-05:00"), "Hungarian"),
        ("2004. január 5., hétfő 15:04",            Some("2004-01-05T15:04:00Z"),      "Hungarian, in words"),
        ("Montag, 5. Januar 2004 um 15:04 Uhr",     Some("2004-01-05T15:04:00Z"),      "German"),
        ("Mo, 05 Mär 2004 15:04:05 MEZ",            Some("2004-03-05T15:04:05+01:00"), "German, with a zone"),
        ("lundi 5 janvier 2004 à 15h04",            Some("2004-01-05T15:04:00Z"),      "French"),
        ("1er août 2004 15 h 04",                   Some("2004-08-01T15:04:00Z"),      "French, the first"),
        ("mar., 06 janv. 2004 15:04:05 +0100",      Some("2004-01-06T15:04:05+01:00"), "French: mar. is Tuesday"),
        ("Mar, 06 Ene 2004 15:04:05 GMT",           Some("2004-01-06T15:04:05Z"),      "Spanish: Mar is Tuesday"),
        ("mar 06/01/2004 15:04",                    Some("2004-06-01T15:04:00Z"),      "a weekday before figures"),
        ("mar 5, 2004",                             Some("2004-03-05T00:00:00Z"),      "mar is March after all"),
        ("5 de enero de 2004, 3:04 p. m.",          Some("2004-01-05T15:04:00Z"),      "Spanish"),
        ("segunda-feira, 5 de março de 2004 15:04", Some("2004-03-05T15:04:00Z"),      "Portuguese"),
        ("lunedì 5 gennaio 2004, ore 15.04",        Some("2004-01-05T15:04:00Z"),      "Italian"),
        ("ma, 05 mrt 2004 15:04:05 +0100",          Some("2004-03-05T15:04:05+01:00"), "Dutch"),
        ("man, 5. jan 2004 kl. 15.04",              Some("2004-01-05T15:04:00Z"),      "Danish"),
        ("tis, 05 maj 2004 15:04:05 +0200",         Some("2004-05-05T15:04:05+02:00"), "Swedish"),
        ("lør, 05 des 2004 15:04:05 +0100",         Some("2004-12-05T15:04:05+01:00"), "Norwegian"),
        ("maanantai 5. tammikuuta 2004 klo 15.04",  Some("2004-01-05T15:04:00Z"),      "Finnish"),
        ("pon., 05 paź 2004 15:04:05 +0200",        Some("2004-10-05T15:04:05+02:00"), "Polish"),
        ("Пн, 05 янв 2004 15:04:05 +0300",          Some("2004-01-05T15:04:05+03:00"), "Russian"),
        ("5 мая 2004 г. в 15:04",                   Some("2004-05-05T15:04:00Z"),      "Russian, in words"),
        ("Paz, 05 Eyl 2004 15:04:05 +0300",         Some("2004-09-05T15:04:05+03:00"), "Turkish: Paz is Sunday"),
        ("05 Ocak 2004 Pazartesi 15:04",            Some("2004-01-05T15:04:00Z"),      "Turkish, in words"),
        ("Thứ Hai, 5 tháng 1, 2004",                Some("2004-01-05T00:00:00Z"),      "Vietnamese"),
        ("5 жопы 2004",                             None,                              "no month in any language"),
    ]);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,80}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_text_of_date_like_parts_makes_it_panic(
        text in "([0-9]{1,20}|[-+:./, TZW(\\[&;]|Jan|mar|GMT|Etc/|pm|a\\.|h|년|오후|日|é|&nbsp;|\u{301}){0,30}"
    ) {
        if let Some(at) = parse(&text) {
            prop_assert_eq!(parse(&at.to_rfc3339()), Some(at), "what was read can be said");
        }
    }

    #[test]
    fn every_instant_is_read_back(
        second in -62_000_000_000_i64..253_000_000_000,
        nanos in 0_u32..1_000_000_000,
        minutes_ahead in -14 * 60..=14 * 60_i32,
    ) {
        let zone = FixedOffset::east_opt(minutes_ahead * 60).unwrap();
        let exact = DateTime::from_timestamp(second, nanos).unwrap().with_timezone(&zone);
        let whole = DateTime::from_timestamp(second, 0).unwrap().with_timezone(&zone);
        for (text, want) in [
            (exact.to_rfc3339(), exact),
            (exact.format("%Y%m%dT%H%M%S%.f%z").to_string(), exact),
            (whole.to_rfc2822(), whole),
            (whole.format("%a %b %e %H:%M:%S %z %Y").to_string(), whole),
            (whole.format("%A, %B %e, %Y %l:%M:%S %p %:z").to_string(), whole),
            (whole.format("%G-W%V-%u %T%z").to_string(), whole),
            (whole.format("%Y-%jT%T%:z").to_string(), whole),
        ] {
            let got = parse(&text);
            prop_assert_eq!(got, Some(want), "{}", text);
            prop_assert_eq!(got.map(|at| *at.offset()), Some(zone), "{}", text);
        }
    }
}
