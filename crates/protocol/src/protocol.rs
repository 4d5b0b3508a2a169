//! The protocols in which subscribers are notified.
//!
//! Several places read the name of a protocol as text, so the compiler does not find them when a
//! variant is added: `docs/contributing/architecture.md`, "Adding a notification protocol", lists
//! them.

/// The protocol by which a subscriber is notified.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// WebSub content distribution, including Superfeedr's webhooks.
    WebSub,
    /// rssCloud: a form with the URL of the changed feed.
    HttpPost,
    /// rssCloud: an XML-RPC call of the procedure that the subscriber registered.
    XmlRpc {
        /// `notifyProcedure` of the registration.
        procedure: String,
    },
    /// rssCloud: a SOAP 1.1 call of the procedure that the subscriber registered.
    Soap {
        /// `notifyProcedure` of the registration.
        procedure: String,
    },
}

impl Protocol {
    /// Returns the word used in the database, in metrics and in the event log.
    pub fn as_str(&self) -> &'static str {
        match self {
            Protocol::WebSub => "websub",
            Protocol::HttpPost => "http-post",
            Protocol::XmlRpc { .. } => "xml-rpc",
            Protocol::Soap { .. } => "soap",
        }
    }

    /// Returns the procedure to call; empty for protocols without one.
    pub fn procedure(&self) -> &str {
        match self {
            Protocol::WebSub | Protocol::HttpPost => "",
            Protocol::XmlRpc { procedure } | Protocol::Soap { procedure } => procedure,
        }
    }

    /// Parses the word used in the database. Returns `None` if it is unknown.
    pub fn from_words(word: &str, procedure: &str) -> Option<Protocol> {
        let procedure = procedure.to_owned();
        Some(match word {
            "websub" => Protocol::WebSub,
            "http-post" => Protocol::HttpPost,
            "xml-rpc" => Protocol::XmlRpc { procedure },
            "soap" => Protocol::Soap { procedure },
            _ => return None,
        })
    }

    /// Returns whether this is an rssCloud protocol; their notifications say that a feed changed,
    /// but not how.
    pub fn is_rsscloud(&self) -> bool {
        *self != Protocol::WebSub
    }
}
