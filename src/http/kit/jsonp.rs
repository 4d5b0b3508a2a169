//! JSONP, for scripts from before CORS: `callback=fn` wraps a reply in a call (L-10, R-7), and
//! a rejection too, because such a script cannot see a status code.

use http::StatusCode;
use serde_json::{Value, json};
use warp::reply::Response;

use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::with_content_type;
use feedgate_protocol::form::Form;

/// Returns the function to call, if the parameter is nothing but the name of a function.
pub(crate) fn function(form: &Form) -> Option<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
    let name = form.get("callback")?;
    let starts_well = !name.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    (name.len() <= 128 && starts_well && name.chars().all(is_part)).then_some(name)
}

/// Wraps `value` in a call of `function`.
pub(crate) fn wrap(function: &str, value: &Value) -> Response {
    // Two characters that JSON allows in strings and old JavaScript does not.
    let text = value.to_string().replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    let body = format!("{function}({text})");
    with_content_type(StatusCode::OK, "application/javascript; charset=utf-8", body)
}

/// Wraps a rejection in a call of `function`.
pub(crate) fn wrap_rejection(function: &str, rejection: &Rejection) -> Response {
    let (code, message) = (rejection.status().as_u16(), rejection.reason());
    wrap(function, &json!({ "error": { "code": code, "message": message } }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_functions_are_called() {
        let cases = [("jQuery17_2", true), ("a.b", true), ("alert(1)//", false), ("1a", false)];
        for (name, want) in cases {
            let form = Form::from_urlencoded(format!("callback={name}").as_bytes()).unwrap();
            assert_eq!(function(&form).is_some(), want, "{name}");
        }
    }
}
