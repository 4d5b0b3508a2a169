//! The significant content of a page, for comparing it with an earlier version (rule N12).
//!
//! Texts and attributes are significant. White space, comments, scripts and styles are not, and
//! neither are values that servers generate for each response: nonces and anti-forgery tokens.

use html5ever::ns;
use scraper::Node;

use super::{Descend, HtmlElement};

/// Substrings of the names of values that servers generate for each response.
const MADE_UP: [&str; 4] = ["nonce", "csrf", "xsrf", "authenticity_token"];

impl HtmlElement<'_> {
    /// Returns the element and its content as a text that is equal for versions that differ only in
    /// insignificant content. A script is significant if a fragment selects it directly.
    pub(crate) fn comparable(self) -> String {
        let mut out = String::new();
        push_tag(self, &mut out);
        self.visit(|node| match node.value() {
            Node::Text(text) => {
                push_words(text, &mut out);
                Descend::Enter
            }
            Node::Element(_) => {
                let Some(element) = scraper::ElementRef::wrap(node) else { return Descend::Skip };
                let tag = HtmlElement(element);
                if tag.is_noise() {
                    return Descend::Skip;
                }
                push_tag(tag, &mut out);
                Descend::Enter
            }
            _ => Descend::Enter,
        });
        out
    }

    /// Returns whether the element is invisible in HTML. Elements of the same names in XML are
    /// content.
    fn is_noise(self) -> bool {
        let is_html = self.0.value().name.ns == ns!(html);
        is_html
            && match self.name() {
                "script" | "style" | "template" | "noscript" => true,
                "meta" => self.attr("name").is_some_and(is_made_up),
                _ => false,
            }
    }
}

fn push_tag(tag: HtmlElement<'_>, out: &mut String) {
    out.push('<');
    out.push_str(tag.name());
    let is_hidden = tag.attr("type").is_some_and(|kind| kind.eq_ignore_ascii_case("hidden"));
    let counts = |name: &str| {
        let is_hidden_value = tag.name() == "input" && is_hidden && name == "value";
        !is_made_up(name) && name != "integrity" && !is_hidden_value
    };
    let mut held: Vec<(&str, &str)> =
        tag.0.value().attrs().filter(|(name, _)| counts(name)).collect();
    held.sort_unstable();
    for (name, value) in held {
        out.push(' ');
        out.push_str(name);
        out.push('=');
        push_words(value, out);
    }
    out.push('>');
}

/// Appends each word followed by a separator that occurs in no word.
fn push_words(text: &str, out: &mut String) {
    for word in text.split_whitespace() {
        out.push_str(word);
        out.push('\n');
    }
}

fn is_made_up(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    MADE_UP.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::super::ParsedHtml;

    fn normal(html: &str) -> String {
        ParsedHtml::read(html).root().unwrap().comparable()
    }

    #[test]
    fn n12_noise_of_a_page_is_no_change() {
        let plain = "<p class='a b' id=x>High water at noon</p>";
        #[rustfmt::skip]
        let cases = [
            ("white space",            "<p  id=x class=' a\tb '>High\n  water at noon </p>\n", true),
            ("order of attributes",    "<p id=x class='a b'>High water at noon</p>",           true),
            ("a comment",              "<!-- 12:04 --><p class='a b' id=x>High water<!----> at noon</p>", true),
            ("a script",               "<p class='a b' id=x>High water at noon</p><script nonce=r4>t=1</script>", true),
            ("a nonce",                "<p nonce=abc class='a b' id=x>High water at noon</p>", true),
            ("a csrf token for scripts", "<meta name=csrf-token content=a1><p class='a b' id=x>High water at noon</p>", true),
            ("another word",           "<p class='a b' id=x>Low water at noon</p>",            false),
            ("another attribute",      "<p class='a c' id=x>High water at noon</p>",           false),
            ("another element",        "<h2 class='a b' id=x>High water at noon</h2>",         false),
        ];
        for (why, html, is_same) in cases {
            assert_eq!(normal(html) == normal(plain), is_same, "{why}");
        }
        let form = |token| format!("<form><input type=hidden name=t value={token}><input value=1>");
        assert_eq!(normal(&form("a1")), normal(&form("b2")), "a token in a form");
    }
}
