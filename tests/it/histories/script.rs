//! What a history consists of, and making one up.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;

/// Everything that happens in one archive.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// How it is read.
    pub(super) view: View,
    /// What was published before anybody reads it.
    pub(super) before: Vec<Batch>,
    /// How often it is read while something happens.
    pub(super) runs: Vec<Run>,
}

/// By which address, and in which order its documents list their entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// By that of the recent document.
    Recent,
    /// By that which leads there from the topic.
    Topic,
    /// With the oldest entry first.
    OldestFirst,
}

/// What happens while the archive is read once, from where it was left.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// What happens just before each document that is asked for, in turn; nothing happens
    /// before the rest.
    pub(super) events: Vec<Event>,
    /// After how many steps the reader dies: before or after a document came, or before or
    /// after an entry was handed over.
    pub(super) dies_after: Option<u8>,
}

/// What others do while somebody reads.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// Nothing.
    Quiet,
    /// The publisher does something.
    Publish(Batch),
    /// All but so many documents are dropped.
    Keep(u8),
    /// The gateway is started anew.
    Restart,
}

/// What a publisher has done when its feed is read again.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    /// What it did, in this order; an entry gets one deed at most.
    pub(super) deeds: Vec<Deed>,
    /// By which setting its records are cut into documents, of [`super::stage::CUTS`].
    pub(super) cut: usize,
}

/// One thing that a publisher does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Deed {
    /// A new entry.
    Write,
    /// One of the entries that there are says something else, or is back.
    Rewrite(u8),
    /// One of the entries that there are is taken back.
    TakeBack(u8),
}

/// Any history.
pub(super) fn histories() -> impl Strategy<Value = History> {
    let view = prop_oneof![Just(View::Recent), Just(View::Topic), Just(View::OldestFirst)];
    let parts = (view, vec(batch(), 0..3), vec(run(), 0..4));
    parts.prop_map(|(view, before, runs)| History { view, before, runs })
}

fn run() -> impl Strategy<Value = Run> {
    let parts = (vec(event(), 0..5), option::of(0..20_u8));
    parts.prop_map(|(events, dies_after)| Run { events, dies_after })
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        100 => Just(Event::Quiet),
        150 => batch().prop_map(Event::Publish),
        20 => (1..4_u8).prop_map(Event::Keep),
        1 => Just(Event::Restart),
    ]
}

fn batch() -> impl Strategy<Value = Batch> {
    let parts = (vec(deed(), 1..5), 0..super::stage::CUTS.len());
    parts.prop_map(|(deeds, cut)| Batch { deeds, cut })
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => Just(Deed::Write),
        2 => any::<u8>().prop_map(Deed::Rewrite),
        1 => any::<u8>().prop_map(Deed::TakeBack),
    ]
}
