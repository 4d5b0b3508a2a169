//! The protocols in which subscribers are notified.

/// How a subscriber is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// WebSub content distribution, and Superfeedr's webhooks, which grew from it.
    WebSub,
    /// rssCloud: a form with the URL of what changed.
    HttpPost,
    /// rssCloud: an XML-RPC call of the procedure the subscriber named.
    XmlRpc {
        /// `notifyProcedure` of the registration.
        procedure: String,
    },
    /// rssCloud: a SOAP 1.1 call of the procedure the subscriber named.
    Soap {
        /// `notifyProcedure` of the registration.
        procedure: String,
    },
}

impl Protocol {
    /// The word kept in the store and used in metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Protocol::WebSub => "websub",
            Protocol::HttpPost => "http-post",
            Protocol::XmlRpc { .. } => "xml-rpc",
            Protocol::Soap { .. } => "soap",
        }
    }

    /// The procedure to call; empty where there is none.
    pub fn procedure(&self) -> &str {
        match self {
            Protocol::WebSub | Protocol::HttpPost => "",
            Protocol::XmlRpc { procedure } | Protocol::Soap { procedure } => procedure,
        }
    }

    /// Reads the word kept in the store.
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

    /// Whether it is one of rssCloud's, which tell that something changed but not
    /// what.
    pub fn is_rsscloud(&self) -> bool {
        *self != Protocol::WebSub
    }
}
