//! The requests of owners.

use super::cast::Cast;
use super::lives::{Life, Verb};

/// The parameters of a request that changes a subscription.
pub(super) fn parameters(
    cast: &Cast,
    life: &Life,
    verb: Verb,
    secret: usize,
) -> Vec<(&'static str, String)> {
    let mode = match verb {
        Verb::Subscribe | Verb::Renew | Verb::Rotate | Verb::Revoke => "subscribe",
        Verb::Pause => "pause",
        Verb::Resume => "resume",
        Verb::Unsubscribe => "unsubscribe",
        Verb::Replay(_) => "replay",
        Verb::Retry => "retry",
    };
    let mut form = vec![
        ("hub.mode", mode.to_owned()),
        ("hub.topic", cast.origins.topic(life.feed)),
        ("hub.callback", cast.callback(life)),
    ];
    if let Verb::Replay(count) = verb {
        form.push(("count", count.to_string()));
    }
    if mode == "subscribe" {
        form.push(("format", "json".to_owned()));
        form.push(("hub.secret", life.secret(secret)));
        if verb == Verb::Revoke {
            form.push(("secret_overlap_seconds", "0".to_owned()));
        }
        if secret.is_multiple_of(2) {
            form.push(("hub.verify", "sync".to_owned()));
        }
    }
    form
}
