//! Whether the validators of a feed, its ETag and Last-Modified, do what they are for: an unchanged
//! document is not sent again.

use chrono::{DateTime, Utc};

use feedgate_core::polling::Polling;

/// What is known of the validators of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValidatorState {
    /// The last document had none.
    Missing,
    /// The server sent the unchanged document although it was sent its validators.
    Ignored,
    /// The server said that the document had not changed although it had.
    Wrong,
    /// The server has answered so many requests in a row without the document.
    Works(u32),
    /// The last document was new, so that they were not put to use yet.
    Unused,
}

impl ValidatorState {
    /// Returns what the polls up to `now` have shown.
    pub(super) fn from_polling(polling: &Polling, now: DateTime<Utc>) -> ValidatorState {
        match polling {
            _ if polling.denies_changes(now) => ValidatorState::Wrong,
            _ if polling.validators.is_empty() => ValidatorState::Missing,
            Polling { resent: true, .. } => ValidatorState::Ignored,
            Polling { since_whole: 0, .. } => ValidatorState::Unused,
            Polling { since_whole, .. } => ValidatorState::Works(*since_whole),
        }
    }

    /// Returns the words for the page.
    pub(super) fn describe(self) -> String {
        match self {
            ValidatorState::Missing => {
                "there are none: each poll gets the whole document".to_owned()
            }
            ValidatorState::Ignored => {
                "do not work: the unchanged document was sent as a whole".to_owned()
            }
            ValidatorState::Wrong => {
                "are wrong: the server answered 304 although the document had changed".to_owned()
            }
            ValidatorState::Works(1) => "work: the last poll got no document".to_owned(),
            ValidatorState::Works(times) => format!("work: the last {times} polls got no document"),
            ValidatorState::Unused => {
                "are sent with the next request, because the last document was new".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use feedgate_core::polling::Validators;

    use super::*;

    #[test]
    fn what_polls_have_shown_of_validators_is_told() {
        let now = DateTime::UNIX_EPOCH;
        let with_etag = |polling: Polling| Polling {
            validators: Validators { etag: Some(b"\"1\"".to_vec()), ..Validators::default() },
            ..polling
        };
        let polling = Polling::default;
        #[rustfmt::skip]
        let cases = [
            (polling(),                                                   ValidatorState::Missing),
            (with_etag(polling()),                                        ValidatorState::Unused),
            (with_etag(Polling { since_whole: 3, ..polling() }),          ValidatorState::Works(3)),
            (with_etag(Polling { resent: true, ..polling() }),            ValidatorState::Ignored),
            (with_etag(Polling { denied_change_at: Some(now), since_whole: 3, ..polling() }), ValidatorState::Wrong),
        ];
        for (polling, want) in cases {
            assert_eq!(ValidatorState::from_polling(&polling, now), want);
        }
    }
}
