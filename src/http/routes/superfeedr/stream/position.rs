//! The position of a stream: how far it has sent each of its logs.
//!
//! It is written as the id of each event, such as `12.345,13.7`, the number of a resource and that
//! of its last record that was sent. Any node can continue from it.

use std::collections::BTreeMap;
use std::fmt;

use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;

/// The last record that was sent of each log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamPosition(pub(crate) BTreeMap<ResourceId, Seq>);

impl StreamPosition {
    /// Parses the id of an event. Returns `None` if it is not one of ours, such as the id of an
    /// event of another server, or none at all.
    pub(crate) fn parse(id: &str) -> Option<StreamPosition> {
        let pair = |text: &str| {
            let (resource, seq) = text.split_once('.')?;
            let (resource, seq) = (resource.parse().ok()?, seq.parse().ok()?);
            (resource >= 0 && seq >= 0).then_some((ResourceId(resource), Seq(seq)))
        };
        id.split(',').map(|text| pair(text.trim())).collect::<Option<_>>().map(StreamPosition)
    }
}

impl fmt::Display for StreamPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (resource, seq)) in self.0.iter().enumerate() {
            let separator = if n == 0 { "" } else { "," };
            write!(f, "{separator}{resource}.{seq}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        let at = |pairs: &[(i64, i64)]| {
            StreamPosition(pairs.iter().map(|(id, seq)| (ResourceId(*id), Seq(*seq))).collect())
        };
        #[rustfmt::skip]
        let cases = [
            ("12.345",       Some(at(&[(12, 345)]))),
            ("12.345,13.0",  Some(at(&[(12, 345), (13, 0)]))),
            ("13.0, 12.345", Some(at(&[(12, 345), (13, 0)]))),
            ("",             None),
            ("7",            None),
            ("7.",           None),
            ("7.-1",         None),
            ("7.1,",         None),
            ("x.1",          None),
        ];
        for (id, want) in cases {
            assert_eq!(StreamPosition::parse(id), want, "{id}");
        }
        let written = at(&[(12, 345), (13, 7)]).to_string();
        assert_eq!(written, "12.345,13.7");
    }
}
