//! Authors: an `h-card`, a name or an address.

use super::{PageReading, avatar};
use crate::model::Person;
use crate::parse::microformats::{MicroformatItem, Property, ValueForm, absolute};
use crate::parse::person;

impl PageReading<'_> {
    /// Returns the person that a property describes.
    pub(super) fn person(&self, property: Property<'_>) -> Option<Person> {
        if let Some(item) = property.item.filter(|item| item.is("h-card")) {
            return self.card(item);
        }
        let address = || property.address(self.base).filter(|address| address.contains("://"));
        if property.form == ValueForm::Address {
            return address().map(|uri| Person { uri: Some(uri), ..Person::default() });
        }
        let mut person = person::person(&property.text())?;
        if person.uri.is_none() && property.tag.name() == "a" {
            person.uri = address();
        }
        Some(person)
    }

    fn card(&self, item: MicroformatItem<'_>) -> Option<Person> {
        let held = item.properties();
        let first = |names: &[&str]| {
            names.iter().find_map(|name| held.iter().find(|property| property.name == *name))
        };
        let name = first(&["name", "nickname", "org"]).map(|property| property.text());
        let uri = first(&["url", "uid"]).and_then(|property| property.address(self.base));
        let uri = uri.or_else(|| item.implied_url(&held).map(|href| absolute(self.base, href)));
        let photo = first(&["photo", "logo"]).and_then(|property| property.address(self.base));
        let photo = photo.or_else(|| item.implied_photo(&held).map(|src| absolute(self.base, src)));
        let email = first(&["email"]).map(|property| match property.tag.attr("href") {
            Some(href) => href.to_owned(),
            None => property.text(),
        });
        let person = Person {
            name: name.or_else(|| item.implied_name(&held)).unwrap_or_default(),
            email: email.map(|email| bare(&email)).filter(|email| email.contains('@')),
            uri,
            extensions: photo.into_iter().map(avatar).collect(),
            ..Person::default()
        };
        (person != Person::default()).then_some(person)
    }
}

/// Returns an e-mail address without `mailto:` and without the query.
fn bare(email: &str) -> String {
    let address = match email.get(..7) {
        Some(scheme) if scheme.eq_ignore_ascii_case("mailto:") => &email[7..],
        _ => email,
    };
    address.split('?').next().unwrap_or_default().trim().to_owned()
}
