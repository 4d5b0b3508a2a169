//! What is wrong with settings only together.

use super::reader::Reader;
use super::{Config, Origin};

impl Config {
    /// Finds what is wrong with settings only together.
    pub(super) fn check_together<G: Fn(&str) -> Option<(String, Origin)>>(
        &self,
        from: &mut Reader<G>,
        tls: &(Option<String>, Option<String>),
    ) {
        if tls.0.is_some() != tls.1.is_some() {
            let names = (from.written("FEEDGATE_TLS_CERT"), from.written("FEEDGATE_TLS_KEY"));
            from.faults.push(format!("{} and {} go together", names.0, names.1));
        }
        let short = self.short_claims(|name| from.written(name));
        from.faults.extend(short);
    }

    /// A claim that ends while the request is still out would have it made twice.
    fn short_claims(&self, written: impl Fn(&str) -> String) -> Vec<String> {
        let timeouts = [
            ("FEEDGATE_DELIVERY_TIMEOUT_S", self.delivery_timeout),
            ("FEEDGATE_FETCH_TIMEOUT_S", self.fetch_timeout),
        ];
        let short = timeouts.iter().filter(|(_, timeout)| self.claim <= *timeout);
        let claim = || written("FEEDGATE_CLAIM_S");
        short.map(|(name, _)| format!("{} must be more than {}", claim(), written(name))).collect()
    }
}
