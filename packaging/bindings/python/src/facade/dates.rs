//! Dates: the text as the document has it, or else in the usual form of its format, and a
//! `time.struct_time` in UTC.

use feedgate_feed::chrono::{DateTime, Datelike, FixedOffset, SecondsFormat, Timelike, Utc};
use pyo3::prelude::*;

use super::dictionary::Writer;

/// Sets a date under `key`, and its parts under `key` and `_parsed`.
pub(super) fn set(key: &str, date: DateTime<FixedOffset>, writer: &Writer<'_, '_>) -> PyResult<()> {
    if let Some(written) = writer.document.written_dates.text_of(date) {
        return set_both(key, written, Some(date), writer);
    }
    let text = if writer.document.is_rss() {
        let is_utc = date.offset().local_minus_utc() == 0;
        let format = if is_utc { "%a, %d %b %Y %H:%M:%S GMT" } else { "%a, %d %b %Y %H:%M:%S %z" };
        date.format(format).to_string()
    } else {
        date.to_rfc3339_opts(SecondsFormat::AutoSi, true)
    };
    set_both(key, &text, Some(date), writer)
}

/// Sets the text of a date.
pub(super) fn set_text(key: &str, text: &str, writer: &Writer<'_, '_>) -> PyResult<()> {
    let date = read(text);
    let written = date.and_then(|date| writer.document.written_dates.text_of(date));
    set_both(key, written.unwrap_or(text), date, writer)
}

fn set_both(
    key: &str,
    text: &str,
    date: Option<DateTime<FixedOffset>>,
    writer: &Writer<'_, '_>,
) -> PyResult<()> {
    writer.set(key, text)?;
    let parsed = format!("{key}_parsed");
    match date {
        Some(date) => writer.set_object(&parsed, struct_time(date, writer)?),
        None => writer.set_object(&parsed, writer.py().None()),
    }
}

/// Reads the forms of W3CDTF and of RFC 822 with four digits in the year.
pub(super) fn read(text: &str) -> Option<DateTime<FixedOffset>> {
    let text = text.trim();
    let whole = DateTime::parse_from_rfc3339(text).or_else(|_| DateTime::parse_from_rfc2822(text));
    whole.ok().or_else(|| {
        let padded = match text.len() {
            4 => format!("{text}-01-01T00:00:00Z"),
            7 => format!("{text}-01T00:00:00Z"),
            10 => format!("{text}T00:00:00Z"),
            // Without seconds: `2002-10-13T09:00+01:00`.
            17 | 22 => format!("{}:00{}", &text.get(..16)?, text.get(16..)?),
            _ => return None,
        };
        DateTime::parse_from_rfc3339(&padded).ok()
    })
}

fn struct_time<'py>(
    date: DateTime<FixedOffset>,
    writer: &Writer<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let date = date.with_timezone(&Utc);
    let day = (date.year(), date.month(), date.day());
    let (weekday, year_day) = (date.weekday().num_days_from_monday(), date.ordinal());
    let parts =
        (day.0, day.1, day.2, date.hour(), date.minute(), date.second(), weekday, year_day, 0);
    writer.document.struct_time.bind(writer.py()).call1((parts,))
}
