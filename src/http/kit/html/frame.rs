//! Markup of others inside a page, in a frame that can do nothing.

use maud::{Markup, PreEscaped, html};

use super::STYLESHEET;

/// Returns a frame that displays sanitized markup in the design of the pages. In the frame, scripts do
/// not run and forms are not sent (`sandbox`), and nothing is loaded, because the document in it has the
/// security policy of the page (CSP3 `#initialize-document-csp`). Its links lead nowhere.
pub(crate) fn preview_frame(title: &str, sanitized: &str) -> Markup {
    let document = html! {
        (maud::DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (title) }
                style { (PreEscaped(STYLESHEET)) }
            }
            body { main.wide { (PreEscaped(sanitized)) } }
        }
    };
    html! { iframe.preview sandbox="" title=(title) srcdoc=(document.into_string()) {} }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_markup_of_others_is_a_value_in_the_page() {
        let frame = preview_frame("\"Preview\"", "<p title=\"a\">1 &lt; 2</p>").into_string();
        let start =
            "<iframe class=\"preview\" sandbox=\"\" title=\"&quot;Preview&quot;\" srcdoc=\"";
        assert!(frame.starts_with(start), "{frame}");
        let (_, document) = frame.split_once("srcdoc=\"").unwrap();
        let (document, rest) = document.split_once('"').unwrap();
        assert_eq!(rest, "></iframe>");
        let text = "&lt;p title=&quot;a&quot;&gt;1 &amp;lt; 2&lt;/p&gt;";
        assert!(document.contains(text), "{document}");
    }
}
