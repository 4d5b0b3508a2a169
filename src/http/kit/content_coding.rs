//! Content codings: negotiation of the coding of a response, and compression.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

/// The quality of brotli: about as fast as gzip, with a fifth less output. Compressed documents are
/// cached, but not forever.
const BROTLI_QUALITY: u32 = 5;
/// The window of brotli, as a power of two: longer than nearly every document.
const BROTLI_WINDOW: u32 = 20;

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentCoding {
    /// No coding.
    Plain,
    /// gzip (RFC 1952).
    Gzip,
    /// brotli (RFC 7932).
    Brotli,
}

impl ContentCoding {
    /// Returns the value of `Content-Encoding`; `None` if there is no coding.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            ContentCoding::Plain => None,
            ContentCoding::Gzip => Some("gzip"),
            ContentCoding::Brotli => Some("br"),
        }
    }

    /// Returns the coding that the client prefers; of several equally preferred ones, the one with
    /// the smallest output (RFC 9110 `#field.accept-encoding`). A client that names no coding, or
    /// refuses all, gets the document without one.
    pub(crate) fn best(headers: &HeaderMap) -> ContentCoding {
        let lists = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|list| list.to_str().ok());
        let (mut brotli, mut gzip, mut others, mut plain) = (None, None, None, None);
        for named in lists.flat_map(|list| list.split(',')) {
            let (name, rest) = named.split_once(';').unwrap_or((named, ""));
            let weight = weight(rest);
            match name.trim().to_ascii_lowercase().as_str() {
                "br" => brotli = Some(weight),
                "gzip" | "x-gzip" => gzip = Some(weight),
                "identity" => plain = Some(weight),
                "*" => others = Some(weight),
                _ => {}
            }
        }
        let others = others.unwrap_or_default();
        let (brotli, gzip) = (brotli.unwrap_or(others), gzip.unwrap_or(others));
        let plain = plain.unwrap_or_default();
        if brotli > 0 && brotli >= gzip && brotli >= plain {
            ContentCoding::Brotli
        } else if gzip > 0 && gzip >= plain {
            ContentCoding::Gzip
        } else {
            ContentCoding::Plain
        }
    }

    /// Encodes `plain`. The output depends on nothing but the input.
    pub(crate) fn encode(self, plain: &Bytes) -> io::Result<Bytes> {
        match self {
            ContentCoding::Plain => Ok(plain.clone()),
            ContentCoding::Gzip => {
                let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
                gzip.write_all(plain)?;
                gzip.finish().map(Bytes::from)
            }
            ContentCoding::Brotli => {
                let mut packed = Vec::new();
                let mut brotli = brotli::CompressorWriter::new(
                    &mut packed,
                    16 * 1024,
                    BROTLI_QUALITY,
                    BROTLI_WINDOW,
                );
                brotli.write_all(plain)?;
                drop(brotli); // dropping the writer completes the stream
                Ok(packed.into())
            }
        }
    }
}

/// Returns the weight (`q`) among the parameters of a coding or a media range, in thousandths.
pub(crate) fn weight(parameters: &str) -> u32 {
    let named = parameters.split(';').filter_map(|parameter| parameter.split_once('='));
    let mut weights = named.filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
    match weights.next() {
        None => 1_000,
        Some((_, weight)) => {
            let weight: f64 = weight.trim().parse().unwrap_or(0.0);
            (weight.clamp(0.0, 1.0) * 1_000.0) as u32
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_reader_is_sent_what_it_likes_best() {
        let cases = [
            (&[][..], ContentCoding::Plain),
            (&[""], ContentCoding::Plain),
            (&["identity"], ContentCoding::Plain),
            (&["gzip"], ContentCoding::Gzip),
            (&["GZIP;Q=0.5"], ContentCoding::Gzip),
            (&["x-gzip"], ContentCoding::Gzip),
            (&["gzip, deflate, br, zstd"], ContentCoding::Brotli),
            (&["gzip", "br"], ContentCoding::Brotli),
            (&["br;q=0.5, gzip"], ContentCoding::Gzip),
            (&["br;q=0, gzip;q=0.000"], ContentCoding::Plain),
            (&["*"], ContentCoding::Brotli),
            (&["*, br;q=0"], ContentCoding::Gzip),
            (&["identity, gzip;q=0.9"], ContentCoding::Plain),
            (&["identity;q=0, *;q=0"], ContentCoding::Plain),
            (&["deflate, zstd"], ContentCoding::Plain),
            (&["br;q=none"], ContentCoding::Plain),
        ];
        for (lists, want) in cases {
            let mut headers = HeaderMap::new();
            for list in lists {
                headers.append(ACCEPT_ENCODING, list.parse().unwrap());
            }
            assert_eq!(ContentCoding::best(&headers), want, "{lists:?}");
        }
    }

    #[test]
    fn every_form_is_read_back() {
        let plain = Bytes::from("<entry>tides</entry>\n".repeat(5_000));
        let mut read = String::new();
        let gzip = ContentCoding::Gzip.encode(&plain).unwrap();
        flate2::read::GzDecoder::new(gzip.as_ref()).read_to_string(&mut read).unwrap();
        assert_eq!(read.as_bytes(), plain);
        read.clear();
        let packed = ContentCoding::Brotli.encode(&plain).unwrap();
        let mut decoder = brotli_decompressor::Decompressor::new(packed.as_ref(), 4_096);
        decoder.read_to_string(&mut read).unwrap();
        assert_eq!(read.as_bytes(), plain);
        assert_eq!(packed, ContentCoding::Brotli.encode(&plain).unwrap());
        assert!(packed.len() < plain.len() / 50 && gzip.len() < plain.len() / 50);
    }
}
