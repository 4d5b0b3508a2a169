//! Apple's podcast elements.

use crate::model::Category;
use crate::parse::person::person;
use crate::parse::target::Target;
use crate::parse::tree::XmlElement;

/// The scheme of iTunes categories and keywords.
const SCHEME: &str = "http://www.itunes.com/";

/// Reads the elements that have a counterpart in Atom. Most of them are kept as well, because
/// podcast software reads them.
pub(super) fn read(element: XmlElement<'_>, target: &mut Target<'_>) -> bool {
    let name = element.lower_name();
    match name.as_ref() {
        "author" => return target.add_author(person(&element.text())),
        "subtitle" if target.feed().is_some() => {
            let text = target.bases.plain(element);
            target.set_about(text);
        }
        "summary" => {
            let text = target.bases.plain(element);
            target.set_about(text);
        }
        "title" => {
            let text = target.bases.plain(element);
            target.set_title(text);
        }
        "image" => {
            let href = element.attr("href").or(element.attr("url")).map(str::to_owned);
            let href = href.or_else(|| element.filled());
            let href = href.map(|href| target.bases.href(element, &href));
            if let (Some(feed), Some(href)) = (target.feed(), href) {
                feed.logo.get_or_insert(href);
            }
        }
        "category" => {
            for category in std::iter::once(element).chain(element.descendants()) {
                let Some(term) = category.attr("text").or(category.attr("term")) else { continue };
                let (term, scheme) = (term.to_owned(), Some(SCHEME.to_owned()));
                target.add_category(Category { term, scheme, label: None, ..Category::default() });
            }
        }
        "keywords" => {
            let text = element.text();
            for term in text.split(',').map(str::trim).filter(|term| !term.is_empty()) {
                let (term, scheme) = (term.to_owned(), Some(SCHEME.to_owned()));
                target.add_category(Category { term, scheme, label: None, ..Category::default() });
            }
        }
        _ => {}
    }
    false
}
