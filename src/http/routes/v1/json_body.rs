//! The body of a call: a JSON object whose fields are known. Each error names its field.

use std::ops::RangeInclusive;

use http::StatusCode;
use serde_json::{Map, Value};

use super::call::{describe_unknown, unknown};
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use feedgate_core::signing::Secret;

/// The fields of a body. A field that is null counts as missing, unless a call says otherwise.
#[derive(Clone, Debug, Default)]
pub(super) struct JsonBody(Map<String, Value>);

impl JsonBody {
    /// Reads the body of a request, which may have these fields and no others. No body is an object
    /// without fields.
    pub(super) fn read(request: &Request, fields: &[&str]) -> Result<JsonBody, Rejection> {
        if request.body.is_empty() {
            return Ok(JsonBody::default());
        }
        let media_type = request.media_type();
        let is_json = ["", "application/json"].contains(&media_type.as_str());
        if !is_json && !media_type.ends_with("+json") {
            let reason = format!(
                "The body must be JSON, but its Content-Type is {media_type}. Send Content-Type: \
                 application/json."
            );
            return Err(Rejection::unreadable_body(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason));
        }
        JsonBody::parse(&request.body, fields)
    }

    fn parse(text: &[u8], fields: &[&str]) -> Result<JsonBody, Rejection> {
        let unreadable = |reason| Rejection::unreadable_body(StatusCode::BAD_REQUEST, reason);
        let value = serde_json::from_slice(text)
            .map_err(|err| unreadable(format!("The body is not JSON: {err}.")))?;
        let Value::Object(members) = value else {
            return Err(unreadable("The body must be a JSON object.".to_owned()));
        };
        if let Some(name) = members.keys().find(|name| !fields.contains(&name.as_str())) {
            let reason = describe_unknown("field", name, fields);
            return Err(unknown("unknown_field", name.chars().take(64).collect(), reason));
        }
        Ok(JsonBody(members))
    }

    /// Returns whether a field is there, even if it is null.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the text in a field.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, Rejection> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(name, "a text", other)),
        }
    }

    /// Returns the text in a field that must be there.
    pub(super) fn required_text(&self, name: &str) -> Result<&str, Rejection> {
        let text = self.text(name)?.filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| {
            let reason = format!("{name} is missing.");
            Rejection::unprocessable(reason).with_code("missing_field").with_field(name)
        })
    }

    /// Returns what the word in a field stands for.
    pub(super) fn word<T: Copy>(
        &self,
        name: &str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, Rejection> {
        let Some(word) = self.text(name)? else { return Ok(None) };
        let meant = words.iter().find(|(known, _)| *known == word);
        meant.map(|(_, value)| Some(*value)).ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|(known, _)| *known).collect();
            let word: String = word.chars().take(64).collect();
            reject_field(name, format!("{name} must be one of {}, not {word}.", known.join(", ")))
        })
    }

    /// Returns the truth value in a field.
    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Rejection> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(wrong_type(name, "true or false", other)),
        }
    }

    /// Returns the number in a field.
    pub(super) fn number(
        &self,
        name: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, Rejection> {
        let value = match self.0.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(value @ Value::Number(_)) => {
                value.as_u64().filter(|number| range.contains(number))
            }
            Some(other) => return Err(wrong_type(name, "a number", other)),
        };
        value.map(Some).ok_or_else(|| {
            let (first, last) = (range.start(), range.end());
            reject_field(name, format!("{name} must be a whole number from {first} to {last}."))
        })
    }

    /// Returns the names and texts of the object in a field.
    pub(super) fn named_texts(&self, name: &str) -> Result<Option<Vec<(&str, &str)>>, Rejection> {
        let members = match self.0.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Object(members)) => members,
            Some(other) => return Err(wrong_type(name, "an object of texts", other)),
        };
        let texts = members.iter().map(|(key, value)| match value {
            Value::String(text) => Ok((key.as_str(), text.as_str())),
            other => Err(wrong_type(name, "an object of texts", other)),
        });
        texts.collect::<Result<_, _>>().map(Some)
    }

    /// Returns the secret in a field; an empty text is none.
    pub(super) fn secret(&self, name: &str) -> Result<Option<Secret>, Rejection> {
        let secret = self.text(name)?.filter(|text| !text.is_empty());
        let secret = secret.map(|text| {
            Secret::new(text.to_owned())
                .map_err(|reason| reject_field(name, format!("{name} cannot be used: {reason}.")))
        });
        secret.transpose()
    }

    /// Returns the texts of the list in a field.
    pub(super) fn texts(&self, name: &str) -> Result<Option<Vec<&str>>, Rejection> {
        let items = match self.0.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Array(items)) => items,
            Some(other) => return Err(wrong_type(name, "a list of texts", other)),
        };
        let texts = items.iter().map(|item| match item {
            Value::String(text) => Ok(text.as_str()),
            other => Err(wrong_type(name, "a list of texts", other)),
        });
        texts.collect::<Result<_, _>>().map(Some)
    }
}

/// Returns the rejection of a field whose value cannot be used.
pub(super) fn reject_field(name: &str, reason: String) -> Rejection {
    Rejection::unprocessable(reason).with_code("invalid_field").with_field(name)
}

fn wrong_type(name: &str, wanted: &str, found: &Value) -> Rejection {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    reject_field(name, format!("{name} must be {wanted}, not {found}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: [&str; 5] = ["url", "format", "digest", "count", "scopes"];

    fn rejection_of(text: &str) -> String {
        let read = JsonBody::parse(text.as_bytes(), &FIELDS).and_then(|body| {
            body.required_text("url")?;
            body.word("format", &[("atom", 1), ("json", 2)])?;
            body.flag("digest")?;
            body.number("count", 1..=50)?;
            body.texts("scopes").map(drop)
        });
        read.err().map_or_else(String::new, |why| format!("{} {}", why.exact_code(), why.reason()))
    }

    #[test]
    fn a02_each_error_names_the_field() {
        #[rustfmt::skip]
        let cases = [
            (r#"{"url": "u", "format": "json", "digest": true, "count": 50, "scopes": ["a"]}"#, ""),
            (r#"{"url": "u", "format": null, "digest": null, "count": null, "scopes": null}"#, ""),
            ("",                             "unreadable_body The body is not JSON: EOF while parsing a value at line 1 column 0."),
            ("[]",                           "unreadable_body The body must be a JSON object."),
            ("{}",                           "missing_field url is missing."),
            (r#"{"url": " "}"#,              "missing_field url is missing."),
            (r#"{"url": 1}"#,                "invalid_field url must be a text, not a number."),
            (r#"{"URL": "u"}"#,              "unknown_field URL is not a field of this call. Did you mean url?"),
            (r#"{"url": "u", "format": "rss"}"#, "invalid_field format must be one of atom, json, not rss."),
            (r#"{"url": "u", "digest": "yes"}"#, "invalid_field digest must be true or false, not a text."),
            (r#"{"url": "u", "count": 0}"#,  "invalid_field count must be a whole number from 1 to 50."),
            (r#"{"url": "u", "count": 1.5}"#, "invalid_field count must be a whole number from 1 to 50."),
            (r#"{"url": "u", "count": "1"}"#, "invalid_field count must be a number, not a text."),
            (r#"{"url": "u", "scopes": "a"}"#, "invalid_field scopes must be a list of texts, not a text."),
            (r#"{"url": "u", "scopes": [1]}"#, "invalid_field scopes must be a list of texts, not a number."),
        ];
        for (text, want) in cases {
            assert_eq!(rejection_of(text), want, "{text}");
        }
    }
}
