//! The secrets with which publishers sign the content of a publish request (row P-4).

use crate::signing::Secret;

/// The secret of each publisher, by its host.
#[derive(Clone, Debug, Default)]
pub struct PublisherSecrets {
    rows: Vec<(String, Secret)>,
}

impl PublisherSecrets {
    /// Parses `DOMAIN=SECRET`, separated by commas. The error is what cannot be used; it may contain
    /// a secret.
    pub fn parse(text: &str) -> Result<PublisherSecrets, String> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let rows = parts.map(|part| row(part).ok_or_else(|| part.to_owned()));
        Ok(PublisherSecrets { rows: rows.collect::<Result<_, String>>()? })
    }

    /// Returns the secret of the publisher of a host: of the longest domain that the host is, or is
    /// below.
    pub fn of_host(&self, host: &str) -> Option<&Secret> {
        let host = host.trim_end_matches('.');
        let own = self.rows.iter().filter(|(domain, _)| {
            let above = host.strip_suffix(domain.as_str());
            above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
        });
        own.max_by_key(|(domain, _)| domain.len()).map(|(_, secret)| secret)
    }
}

fn row(text: &str) -> Option<(String, Secret)> {
    let (domain, secret) = text.split_once('=')?;
    let domain = domain.trim().to_ascii_lowercase();
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    if domain.is_empty() || !domain.chars().all(is_host) || secret.is_empty() {
        return None;
    }
    Some((domain, Secret::new(secret.to_owned()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_of_a_host_is_that_of_its_longest_domain() {
        let secrets =
            PublisherSecrets::parse("a.test=one, Blog.a.test=t=wo,127.0.0.1=three").unwrap();
        let of_host = |host| secrets.of_host(host).map(Secret::expose);
        #[rustfmt::skip]
        let cases = [
            ("a.test",        Some("one")),
            ("www.a.test.",   Some("one")),
            ("x.blog.a.test", Some("t=wo")),
            ("127.0.0.1",     Some("three")),
            ("data.test",     None),
            ("test",          None),
        ];
        for (host, want) in cases {
            assert_eq!(of_host(host), want, "{host}");
        }
        for bad in ["a.test", "a.test=", "=x", "a test=x", "https://a.test=x"] {
            assert!(PublisherSecrets::parse(bad).is_err(), "{bad}");
        }
        assert!(PublisherSecrets::parse("").unwrap().of_host("a.test").is_none());
    }
}
