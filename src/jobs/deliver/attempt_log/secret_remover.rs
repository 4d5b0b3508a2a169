//! Removing secrets from what is recorded of an attempt.
//!
//! The requests contain signatures, from which no secret can be computed, but they also name the
//! topic, whose URL may contain credentials. A callback may respond with anything, such as an error
//! page with its configuration.

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use http::HeaderName;
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, SET_COOKIE};
use url::Url;

use feedgate_core::signing::Secret;
use feedgate_core::subscription::Subscription;

/// Stands for what was removed.
pub(super) const REMOVED: &str = "…";
/// Headers whose values are credentials, or stand for them in a session.
const CREDENTIALS: [HeaderName; 4] = [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE, SET_COOKIE];

/// Returns whether the value of a header is a credential.
pub(super) fn is_credential(name: &HeaderName) -> bool {
    CREDENTIALS.contains(name)
}

/// Removes the secrets of one subscription from texts. `Debug` does not print them.
#[derive(Clone, Default)]
pub(in crate::jobs::deliver) struct SecretRemover {
    /// The secrets in all forms in which they occur, longest first, none of them empty.
    secrets: Vec<String>,
}

impl SecretRemover {
    /// Returns what removes the secrets of a subscription: the keys of its signatures, the headers for its
    /// callback, and the credentials in the URL of its topic. That of a callback never has any.
    pub(in crate::jobs::deliver) fn for_subscription(subscription: &Subscription) -> SecretRemover {
        let signing = &subscription.signing;
        let previous = signing.previous.iter().map(|previous| &previous.secret);
        let mut secrets: Vec<String> =
            signing.secret.iter().chain(previous).flat_map(forms_of_secret).collect();
        let topic = &subscription.topic;
        let urls = [topic.as_str(), topic.subscribed_as()];
        secrets.extend(urls.into_iter().flat_map(forms_of_credentials));
        secrets.extend(subscription.headers.pairs().flat_map(|(_, value)| forms_of_header(value)));
        secrets.retain(|secret| !secret.is_empty());
        secrets.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        SecretRemover { secrets }
    }

    /// Returns the text without secrets.
    pub(super) fn remove_from(&self, text: &str) -> String {
        let mut text = Cow::Borrowed(text);
        for secret in &self.secrets {
            if text.contains(secret) {
                text = Cow::Owned(text.replace(secret, REMOVED));
            }
        }
        text.into_owned()
    }

    /// Returns the bytes without secrets.
    pub(in crate::jobs::deliver) fn remove_from_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        self.secrets.iter().fold(bytes.to_vec(), |bytes, secret| without(bytes, secret.as_bytes()))
    }
}

impl std::fmt::Debug for SecretRemover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretRemover(..)")
    }
}

/// Returns a key as its owner wrote it, without the prefix of Standard Webhooks, and as bytes.
fn forms_of_secret(secret: &Secret) -> Vec<String> {
    let text = secret.expose();
    let mut forms = vec![text.to_owned()];
    forms.extend(
        text.split_once('_').filter(|(prefix, _)| *prefix == "whsec").map(|it| it.1.into()),
    );
    let key = secret.standard_key();
    forms.extend([BASE64_STANDARD.encode(&key), hex::encode(&key)]);
    forms.extend(base64_texts(&BASE64_STANDARD_NO_PAD.encode(&key)));
    forms.extend(String::from_utf8(key));
    forms
}

/// Returns the value of a header, and the credentials in it: also decoded, without the padding of base64, and
/// each part of a cookie or of a list of parameters. Values that are shorter than any secret would be found
/// in everything.
fn forms_of_header(value: &str) -> Vec<String> {
    const SHORTEST: usize = 4;
    let is_scheme = |word: &str| word.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
    let credentials = match value.split_once(' ') {
        Some((scheme, credentials)) if is_scheme(scheme) => credentials,
        _ => value,
    };
    let mut forms = vec![value.to_owned(), credentials.to_owned()];
    let unpadded = credentials.trim_end_matches('=');
    forms.extend(base64_texts(unpadded));
    let decoded = BASE64_STANDARD_NO_PAD.decode(unpadded).ok();
    let pair = decoded.and_then(|it| String::from_utf8(it).ok());
    if let Some((name, password)) = pair.as_deref().and_then(|pair| pair.split_once(':')) {
        forms.extend([format!("{name}:{password}"), password.to_owned()]);
    }
    for part in credentials.split([';', ',']) {
        let value = part.split_once('=').map_or(part, |(_, value)| value);
        forms.extend([part, value].map(|it| it.trim_matches([' ', '"', '=']).to_owned()));
    }
    forms.retain(|form| form.len() >= SHORTEST);
    forms
}

/// Returns a text in base64 without padding, in both alphabets.
fn base64_texts(unpadded: &str) -> [String; 2] {
    [unpadded.to_owned(), unpadded.replace('+', "-").replace('/', "_")]
}

/// Returns the credentials in a URL as they are written there, as a server reads them, and as they
/// are sent in `Authorization`.
fn forms_of_credentials(url: &str) -> Vec<String> {
    let Ok(url) = Url::parse(url) else { return Vec::new() };
    let Some(password) = url.password() else {
        // A lone user name may be a token.
        let name = url.username();
        return if name.is_empty() { Vec::new() } else { pair_forms(name, "") };
    };
    let mut forms = pair_forms(url.username(), password);
    forms.extend([password.to_owned(), decoded(password)]);
    forms
}

fn pair_forms(name: &str, password: &str) -> Vec<String> {
    let pair = format!("{}:{}", decoded(name), decoded(password));
    let mut forms =
        vec![format!("{name}:{password}@"), format!("{name}@"), BASE64_STANDARD.encode(&pair)];
    forms.extend(base64_texts(&BASE64_STANDARD_NO_PAD.encode(&pair)));
    forms
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Returns the bytes with [`REMOVED`] in place of each occurrence of `secret`.
fn without(bytes: Vec<u8>, secret: &[u8]) -> Vec<u8> {
    let (mut kept, mut rest) = (Vec::with_capacity(bytes.len()), bytes.as_slice());
    while let Some(at) = rest.windows(secret.len()).position(|part| part == secret) {
        kept.extend_from_slice(&rest[..at]);
        kept.extend_from_slice(REMOVED.as_bytes());
        rest = &rest[at + secret.len()..];
    }
    kept.extend_from_slice(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::deliver::test_subscriptions;
    use chrono::DateTime;
    use feedgate_core::callback_headers::CallbackHeaders;
    use feedgate_core::signing::{PreviousSecret, Signing};
    use feedgate_core::topic::Topic;

    fn remover() -> SecretRemover {
        let secret = |text: &str| Secret::new(text.to_owned()).unwrap();
        let previous = PreviousSecret {
            secret: secret("whsec_b2xkLXNlY3JldA=="),
            until: DateTime::UNIX_EPOCH,
        };
        let (secret, method) = (Some(secret("opensesame")), None);
        SecretRemover::for_subscription(&Subscription {
            topic: Topic::parse("https://ada:feed%21pass@feeds.test/").unwrap(),
            signing: Signing { secret, method, previous: Some(previous) },
            headers: CallbackHeaders::parse(
                "x-key: k3y-of-ada\nx-n: 7\ncookie: sid=c00kie-1; csrf=\"t0k3n\"; n=1",
                "Basic bob:sesame",
            )
            .unwrap(),
            ..test_subscriptions::subscription()
        })
    }

    #[test]
    fn every_form_of_every_secret_is_removed() {
        let pair = BASE64_STANDARD.encode("ada:feed!pass");
        let authorization = format!("Basic {pair}");
        #[rustfmt::skip]
        let cases = [
            ("{\"key\":\"opensesame\"}",              "{\"key\":\"…\"}"),
            ("opensesameopensesame",                  "……"),
            ("whsec_b2xkLXNlY3JldA==, old-secret",    "…, …"),
            ("b2xkLXNlY3JldA",                        "…"),
            ("<https://ada:feed%21pass@feeds.test/>", "<https://…feeds.test/>"),
            ("the password is feed!pass",             "the password is …"),
            (authorization.as_str(),                  "Basic …"),
            ("sha256=6f70656e736573616d65",           "sha256=…"),
            ("k3y-of-ada for 7",                      "… for 7"),
            ("Basic Ym9iOnNlc2FtZQ==",                "…"),
            ("{\"got\":\"Ym9iOnNlc2FtZQ\"}",          "{\"got\":\"…\"}"),
            ("bob:sesame, sesame",                    "…, …"),
            ("cookies: {sid: c00kie-1, csrf: t0k3n}", "cookies: {sid: …, csrf: …}"),
            ("Basic authentication, n=1",             "Basic authentication, n=1"),
            ("nothing of all this",                   "nothing of all this"),
        ];
        let remover = remover();
        for (text, want) in cases {
            assert_eq!(remover.remove_from(text), want, "{text}");
            let bytes = remover.remove_from_bytes(text.as_bytes());
            assert_eq!(String::from_utf8(bytes).unwrap(), want, "{text}");
        }
        assert_eq!(format!("{remover:?}"), "SecretRemover(..)");
    }
}
