//! JSONP, for scripts of the time before CORS: `callback=fn` wraps an answer in a
//! call (rows L-10 and R-7), and an error too, because a script cannot see a status
//! code (row R-8).

use http::StatusCode;
use serde_json::{Value, json};
use warp::reply::Response;

use crate::http::kit::exchange::with_type;
use crate::http::kit::params::Refused;
use feedgate_protocol::form::Form;

/// The function to call, if one was named that can be nothing but a function's name.
pub(crate) fn function(form: &Form) -> Option<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
    let name = form.get("callback")?;
    let starts_well = !name.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    (name.len() <= 128 && starts_well && name.chars().all(is_part)).then_some(name)
}

/// An answer, wrapped.
pub(crate) fn answer(function: &str, value: &Value) -> Response {
    // Two characters that JSON allows in strings and old JavaScript does not.
    let text = value.to_string().replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    let body = format!("{function}({text})");
    with_type(StatusCode::OK, "application/javascript; charset=utf-8", body)
}

/// An error, wrapped.
pub(crate) fn error(function: &str, refused: &Refused) -> Response {
    let (code, message) = (refused.status.as_u16(), &refused.why);
    answer(function, &json!({ "error": { "code": code, "message": message } }))
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
