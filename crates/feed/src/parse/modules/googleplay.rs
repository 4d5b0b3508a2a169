//! Google Play's podcast elements: those of iTunes under another name. All are kept.

use super::{Home, itunes};
use crate::parse::tree::El;
use crate::parse::vocabulary::Vocabulary;

pub(super) static GOOGLEPLAY: Vocabulary = Vocabulary {
    prefix: "googleplay",
    uris: &[
        "http://www.google.com/schemas/play-podcasts/1.0",
        "http://www.google.com/schemas/play-podcasts/1.0/play-podcasts.xsd",
    ],
    read,
};

fn read(element: El<'_>, home: &mut Home<'_>) -> bool {
    let name = element.lower_name();
    match name.as_ref() {
        "author" if home.authors().is_empty() => itunes::read(element, home),
        "description" if home.about().is_none() => {
            let text = home.bases.html(element);
            home.set_about(text)
        }
        "image" => itunes::read(element, home),
        _ => false,
    }
}
