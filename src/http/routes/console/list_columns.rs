//! The columns of a list, of which all but the first can be hidden.
//!
//! A list declares its columns once; its head, its rows and the form that hides some are made of that. The names
//! of what is hidden are in a cookie of the browser. A name in it that no list has hides nothing.

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use url::form_urlencoded;

use super::visit::Visit;

/// The name of the cookie.
pub(super) const COOKIE: &str = "feedgate_columns";
/// The address to which the form is sent.
const PATH: &str = "console/columns";
/// The most names that are read of the cookie: more than all lists have.
const MOST_NAMES: usize = 32;
/// The parameters that say which page of the list is displayed.
const PLACE: [&str; 2] = ["after", "back"];

/// What a row has in a column.
type Cell<R> = fn(&Visit, &R, DateTime<Utc>) -> Markup;

/// A column of a list.
pub(super) struct ListColumn<R: 'static> {
    /// The name in the form and in the cookie.
    pub(super) word: &'static str,
    pub(super) heading: &'static str,
    /// The class of its cells.
    pub(super) class: Option<&'static str>,
    pub(super) cell: Cell<R>,
}

/// A list with its columns.
pub(super) struct ColumnList<R: 'static> {
    /// The name, which is also the last part of its address.
    pub(super) name: &'static str,
    /// The parameters of its filter.
    pub(super) parameters: &'static [&'static str],
    /// The columns. The first is always displayed.
    pub(super) columns: &'static [ListColumn<R>],
}

impl<R: 'static> ColumnList<R> {
    /// Returns all columns.
    pub(super) fn all(&self) -> Vec<&'static ListColumn<R>> {
        self.columns.iter().collect()
    }

    /// Returns the columns that are not hidden.
    pub(super) fn displayed(&self, visit: &Visit) -> Vec<&'static ListColumn<R>> {
        let mut columns = self.all();
        columns.retain(|column| !self.is_hidden(visit, column));
        columns
    }

    fn is_hidden(&self, visit: &Visit, column: &ListColumn<R>) -> bool {
        let names = visit.request.cookie(COOKIE).unwrap_or_default().split('.');
        let is_first = self.columns.first().is_some_and(|first| first.word == column.word);
        let is_named = |name: &str| name.split_once('-') == Some((self.name, column.word));
        !is_first && names.take(MOST_NAMES).any(is_named)
    }

    /// Returns whether a form chooses columns of this list.
    fn is_chosen(&self, visit: &Visit) -> bool {
        visit.value("list") == self.name
    }

    /// Returns the names for the cookie of the columns that are hidden after a form was sent: of this list what
    /// the form does not have, of another list what was hidden before.
    pub(super) fn hidden_names(&self, visit: &Visit) -> Vec<String> {
        let has_column = |word| visit.form.all("column").any(|named| named == word);
        let is_hidden = |column: &&ListColumn<R>| match self.is_chosen(visit) {
            true => !has_column(column.word),
            false => self.is_hidden(visit, column),
        };
        let hidden = self.columns.iter().skip(1).filter(is_hidden);
        hidden.map(|column| format!("{}-{}", self.name, column.word)).collect()
    }

    /// Returns the path of the page on which a form was sent, with its filter; `None` if it was that of another
    /// list.
    pub(super) fn page_of_form(&self, visit: &Visit) -> Option<String> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let query = query.extend_pairs(self.kept(visit)).finish();
        self.is_chosen(visit).then(|| format!("console/{}?{query}", self.name))
    }

    /// Returns the filter and the place in the list, which the form keeps.
    fn kept<'v>(&self, visit: &'v Visit) -> impl Iterator<Item = (&'v str, &'v str)> {
        let parameters = self.parameters;
        let pairs = visit.form.pairs().filter(|(_, value)| !value.is_empty());
        pairs.filter(move |(name, _)| parameters.contains(name) || PLACE.contains(name))
    }

    /// Returns the form that hides columns.
    pub(super) fn form(&self, visit: &Visit) -> Markup {
        html! {
            details.columns {
                summary { "Columns" }
                form.inline method="post" action=(visit.address(PATH)) {
                    (visit.csrf_field())
                    input type="hidden" name="list" value=(self.name);
                    @for (name, value) in self.kept(visit) {
                        input type="hidden" name=(name) value=(value);
                    }
                    @for column in self.columns.iter().skip(1) {
                        label.choice {
                            input type="checkbox" name="column" value=(column.word)
                                checked[!self.is_hidden(visit, column)];
                            (column.heading)
                        }
                    }
                    button type="submit" { "Apply" }
                }
            }
        }
    }
}

/// Returns the head of a table, whose first cell may be another one.
pub(super) fn head<R: 'static>(columns: &[&ListColumn<R>], first: &Markup) -> Markup {
    html! {
        thead { tr {
            (first)
            @for column in columns { th class=[column.class] scope="col" { (column.heading) } }
        } }
    }
}

/// Returns the cells of a row.
pub(super) fn cells<R: 'static>(
    columns: &[&ListColumn<R>],
    visit: &Visit,
    record: &R,
    now: DateTime<Utc>,
) -> Markup {
    html! {
        @for column in columns { td class=[column.class] { ((column.cell)(visit, record, now)) } }
    }
}
