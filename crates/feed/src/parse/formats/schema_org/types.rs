//! The types of schema.org that decide whether a page is a list of entries, an entry, or a document.

/// What an item of a type is for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// An entry, wherever it is found.
    Entry,
    /// A list of entries that is what its page is about.
    List,
    /// A list of anything, which may stand beside what its page is about.
    PlainList,
    /// The page itself, which names what it is about.
    Page,
    /// The item of a list, with its position.
    ListItem,
    /// What pages have beside what they are about: their owners, menus and pictures.
    Furniture,
    /// Anything else, such as a product or a recipe.
    Subject,
}

/// The roles of types; those of types that are not listed follow from their ends.
#[rustfmt::skip]
const ROLES: [(&str, Role); 50] = [
    ("Article", Role::Entry), ("AdvertiserContentArticle", Role::Entry), ("AnalysisNewsArticle", Role::Entry),
    ("AskPublicNewsArticle", Role::Entry), ("BackgroundNewsArticle", Role::Entry), ("BlogPosting", Role::Entry),
    ("DiscussionForumPosting", Role::Entry), ("NewsArticle", Role::Entry), ("OpinionNewsArticle", Role::Entry),
    ("Report", Role::Entry), ("ReportageNewsArticle", Role::Entry), ("ReviewNewsArticle", Role::Entry),
    ("SatiricalArticle", Role::Entry), ("ScholarlyArticle", Role::Entry), ("SocialMediaPosting", Role::Entry),
    ("TechArticle", Role::Entry), ("LiveBlogPosting", Role::Entry), ("PodcastEpisode", Role::Entry),
    ("RadioEpisode", Role::Entry), ("Episode", Role::Entry),

    ("Blog", Role::List), ("CollectionPage", Role::List), ("DataFeed", Role::List),
    ("PodcastSeries", Role::List), ("PodcastSeason", Role::List), ("RadioSeries", Role::List), ("RadioSeason", Role::List),
    ("ItemList", Role::PlainList),

    ("WebPage", Role::Page), ("AboutPage", Role::Page), ("ContactPage", Role::Page), ("ItemPage", Role::Page),
    ("ProfilePage", Role::Page), ("SearchResultsPage", Role::Page), ("WebSite", Role::Page),
    ("ListItem", Role::ListItem), ("DataFeedItem", Role::ListItem),

    ("BreadcrumbList", Role::Furniture), ("ImageObject", Role::Furniture), ("Organization", Role::Furniture),
    ("Corporation", Role::Furniture), ("Person", Role::Furniture), ("Brand", Role::Furniture),
    ("SiteNavigationElement", Role::Furniture), ("WebPageElement", Role::Furniture), ("WPHeader", Role::Furniture),
    ("WPFooter", Role::Furniture), ("WPSideBar", Role::Furniture), ("PostalAddress", Role::Furniture),
    ("SearchAction", Role::Furniture),
];

/// Returns the role of an item with these types: the first that one of them has.
pub(super) fn role(types: &[String]) -> Role {
    let known = types.iter().filter_map(|name| {
        let listed = ROLES.iter().find(|(held, _)| held == name).map(|(_, role)| *role);
        let is_owner = name.ends_with("Organization");
        listed.or(is_owner.then_some(Role::Furniture))
    });
    let known: Vec<Role> = known.collect();
    let order =
        [Role::Entry, Role::List, Role::Furniture, Role::PlainList, Role::ListItem, Role::Page];
    let first = order.into_iter().find(|role| known.contains(role));
    first.unwrap_or(if types.is_empty() { Role::Furniture } else { Role::Subject })
}
