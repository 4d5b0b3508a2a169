//! Request parameters from a query, a urlencoded form, a multipart form or JSON.
//!
//! All four become one ordered list of names and values, because clients of the same API differ
//! only in how they send parameters (rows A-5 to A-7). A name may be repeated; `name[]` and
//! `name[0]` are repetitions of `name`, as in PHP.

use serde_json::Value;
use url::form_urlencoded;

/// The maximum number of parameters in one request. A request with more is refused.
pub const MOST_PARAMETERS: usize = 1_000;
/// The most bytes of names and values that the members of a JSON object become. Each element of an
/// array repeats the name, so a short document could otherwise become one that fills the memory.
pub const MAX_JSON_BYTES: usize = 2 << 20;

/// The parameters of a request, in the order sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    pairs: Vec<(String, String)>,
}

/// The reason why bytes cannot be read as parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadForm {
    /// There are more than [`MOST_PARAMETERS`].
    #[error("the request has more than {MOST_PARAMETERS} parameters")]
    TooMany,
    /// The names and values of a JSON object take more than [`MAX_JSON_BYTES`].
    #[error("the names and values of the parameters are longer than {MAX_JSON_BYTES} bytes")]
    TooLong,
    /// The body is not a JSON object.
    #[error("the body is not a JSON object: {0}")]
    Json(String),
    /// The body is not a multipart form.
    #[error("the body is not a multipart form: {0}")]
    Multipart(&'static str),
}

impl Form {
    /// Parses a query string or a urlencoded body. Invalid UTF-8 is replaced; the only error is too
    /// many parameters.
    pub fn from_urlencoded(bytes: &[u8]) -> Result<Form, BadForm> {
        let pairs = form_urlencoded::parse(bytes).filter(|(name, _)| !name.is_empty());
        Form::from_pairs(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())))
    }

    /// Parses a JSON object: `{"hub.mode": "subscribe", "hub.topic": ["a", "b"]}`. Nulls are left
    /// out, booleans and numbers become text, arrays repeat their name, and a nested object gives
    /// `outer.inner` for `hub` and `outer[inner]` for any other name.
    pub fn from_json(bytes: &[u8]) -> Result<Form, BadForm> {
        let value = serde_json::from_slice(bytes).map_err(|err| BadForm::Json(err.to_string()))?;
        Form::from_value(value)
    }

    /// Reads a JSON object as [`from_json`](Self::from_json) does.
    pub fn from_value(value: Value) -> Result<Form, BadForm> {
        let members = match value {
            Value::Object(members) => members,
            Value::Null => return Ok(Form::default()), // sent by scripts without parameters
            _ => return Err(BadForm::Json("it is a JSON value of another type".to_owned())),
        };
        let mut flattened = Flattened::default();
        for (name, value) in members {
            flattened.add(&name, value)?;
        }
        Ok(Form { pairs: flattened.pairs })
    }

    /// Creates a form of names and values.
    pub fn from_pairs(pairs: impl Iterator<Item = (String, String)>) -> Result<Form, BadForm> {
        let pairs: Vec<_> = pairs.take(MOST_PARAMETERS + 1).collect();
        if pairs.len() > MOST_PARAMETERS {
            return Err(BadForm::TooMany);
        }
        Ok(Form { pairs })
    }

    /// Appends the parameters of `other`.
    pub fn and(mut self, other: Form) -> Form {
        self.pairs.extend(other.pairs);
        self
    }

    /// Returns the parameters without those of this name.
    pub fn without(&self, name: &str) -> Form {
        let pairs = self.pairs.iter().filter(|(held, _)| !is_named(held, name)).cloned();
        Form { pairs: pairs.collect() }
    }

    /// Returns how many bytes the names and values have.
    pub fn bytes(&self) -> usize {
        self.pairs.iter().map(|(name, value)| name.len() + value.len()).sum()
    }

    /// Returns whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Returns all parameters, in order.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the first value of this name that is not blank, trimmed.
    pub fn get(&self, name: &str) -> Option<&str> {
        let named = self.pairs.iter().filter(|(held, _)| is_named(held, name));
        named.map(|(_, value)| value.trim()).find(|value| !value.is_empty())
    }

    /// Returns the first value of this name exactly as sent, for values that are compared or signed
    /// byte for byte.
    pub fn get_verbatim(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(held, _)| is_named(held, name)).map(|(_, value)| value.as_str())
    }

    /// Returns all values of this name, trimmed.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.pairs.iter().filter(move |(held, _)| is_named(held, name));
        named.map(|(_, value)| value.trim())
    }

    /// Returns whether this name was sent, even with an empty value.
    pub fn has(&self, name: &str) -> bool {
        self.pairs.iter().any(|(held, _)| is_named(held, name))
    }

    /// Returns whether a flag is set: `true`, `1`, `yes` or `on`.
    pub fn is_set(&self, name: &str) -> bool {
        let yes = ["true", "1", "yes", "on"];
        self.get(name).is_some_and(|value| yes.iter().any(|yes| yes.eq_ignore_ascii_case(value)))
    }
}

/// Returns whether `held` is `name`, `name[]` or `name[0]`.
fn is_named(held: &str, name: &str) -> bool {
    let Some(rest) = held.strip_prefix(name) else { return false };
    let index = rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    rest.is_empty() || index.is_some_and(|index| index.bytes().all(|b| b.is_ascii_digit()))
}

/// The members of a JSON object as parameters.
#[derive(Debug, Default)]
struct Flattened {
    pairs: Vec<(String, String)>,
    /// The bytes of all names and values, including those of members that are no parameters.
    bytes: usize,
}

impl Flattened {
    fn add(&mut self, name: &str, value: Value) -> Result<(), BadForm> {
        match value {
            Value::Null => Ok(()),
            Value::Bool(yes) => self.push(name, yes.to_string()),
            Value::Number(number) => self.push(name, number.to_string()),
            Value::String(text) => self.push(name, text),
            Value::Array(values) => values.into_iter().try_for_each(|value| self.add(name, value)),
            Value::Object(members) => {
                for (inner, value) in members {
                    self.spend(name.len() + inner.len())?;
                    let name = match name {
                        "hub" | "superfeedr" => format!("{name}.{inner}"),
                        _ => format!("{name}[{inner}]"),
                    };
                    self.add(&name, value)?;
                }
                Ok(())
            }
        }
    }

    fn push(&mut self, name: &str, value: String) -> Result<(), BadForm> {
        self.spend(name.len() + value.len())?;
        if self.pairs.len() == MOST_PARAMETERS {
            return Err(BadForm::TooMany);
        }
        self.pairs.push((name.to_owned(), value));
        Ok(())
    }

    fn spend(&mut self, bytes: usize) -> Result<(), BadForm> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_JSON_BYTES { Err(BadForm::TooLong) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Form {
        Form::from_urlencoded(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_query_is_read_as_clients_write_it() {
        let form =
            parsed("hub.mode=subscribe&hub.topic=http%3A%2F%2Fa.test%2F%3Fx%3D1&&empty=&flag&");
        assert_eq!(form.get("hub.mode"), Some("subscribe"));
        assert_eq!(form.get("hub.topic"), Some("http://a.test/?x=1"));
        assert_eq!(form.get("empty"), None);
        assert!(form.has("empty") && form.has("flag") && !form.has("hub"));
    }

    #[test]
    fn repeated_names_keep_their_order() {
        let form = parsed("hub.url=a&hub.url[]=b&hub.url%5B1%5D=+c+&hub.urls=d");
        assert_eq!(form.all("hub.url").collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(form.get_verbatim("hub.url[1]"), Some(" c "));
    }

    #[test]
    fn json_says_the_same_as_a_form() {
        let json = br#"{"hub.mode":"subscribe","hub.secret":null,"retrieve":true,"count":5,
            "hub":{"topic":"t"},"search":{"feed":{"url":"u"}},"hub.url":["a","b"]}"#;
        let form = Form::from_json(json).unwrap();
        #[rustfmt::skip]
        let want = [("hub.mode", "subscribe"), ("retrieve", "true"), ("count", "5"), ("hub.topic", "t"),
            ("search[feed][url]", "u"), ("hub.url", "a"), ("hub.url", "b")];
        assert_eq!(form.pairs().collect::<Vec<_>>(), want);
        assert!(form.is_set("retrieve"));
        assert_eq!(Form::from_json(b"null"), Ok(Form::default()));
        for bad in ["[]", "{", "1"] {
            assert!(matches!(Form::from_json(bad.as_bytes()), Err(BadForm::Json(_))), "{bad}");
        }
    }

    #[test]
    fn s16_a_short_json_object_does_not_become_a_long_form() {
        let name = "n".repeat(50_000);
        let repeated = format!("{{\"{name}\":[{}1]}}", "1,".repeat(6_000));
        assert_eq!(Form::from_json(repeated.as_bytes()), Err(BadForm::TooLong));
        let members: String = (0..6_000).map(|n| format!("\"{n}\":null,")).collect();
        let nested = format!("{{\"{name}\":{{{members}\"last\":1}}}}");
        assert_eq!(Form::from_json(nested.as_bytes()), Err(BadForm::TooLong));
        let many = format!("{{\"a\":[{}1]}}", "1,".repeat(1_000));
        assert_eq!(Form::from_json(many.as_bytes()), Err(BadForm::TooMany));
        let nothing = format!("{{\"{name}\":[{}null]}}", "null,".repeat(6_000));
        assert_eq!(Form::from_json(nothing.as_bytes()), Ok(Form::default()));
    }

    #[test]
    fn a_thousand_parameters_are_enough() {
        assert!(Form::from_urlencoded("a=1&".repeat(1_000).as_bytes()).is_ok());
        let many = Form::from_urlencoded("a=1&".repeat(1_001).as_bytes());
        assert_eq!(many, Err(BadForm::TooMany));
    }
}
