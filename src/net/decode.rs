//! Content decoding with bounded memory and time (P37, P43, S18).
//!
//! A decompression bomb expands to thousands of times its size (measured: gzip 1,029:1, zstd
//! 32,498:1, brotli 657,930:1), so decoding goes chunk by chunk and stops at a limit on
//! the decoded bytes, at a limit on their ratio, and at a limit on the window of zstd.
//! Exceeding a limit is an error, never a truncated document. One layer is decoded; no honest
//! server sends two.
//!
//! A `Content-Encoding` that the bytes contradict is ignored: many servers announce `gzip` for
//! plain text.

use std::io::{self, BufRead, Read};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

use super::FetchError;

/// The maximum ratio of decoded bytes to bytes on the wire.
const RATIO: u64 = 100;
/// The number of decoded bytes from which the ratio applies, because small documents compress well.
const RATIO_FROM_BYTES: u64 = 1024 * 1024;
/// The maximum window of zstd, as a power of two: 8 MiB, the maximum that RFC 9659 allows senders.
const ZSTD_WINDOW_LOG: u32 = 23;
/// The maximum number of members of a gzip file. Block-wise compressors write one for each 64 kB,
/// which is 160 for the longest body; an endless series of empty ones would cost time.
const MOST_MEMBERS: usize = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// Decodes the document in `wire`, up to `limit_bytes`.
pub(super) async fn decode(
    headers: &HeaderMap,
    wire: Bytes,
    limit_bytes: u64,
) -> Result<Bytes, FetchError> {
    let Some(coding) = coding(headers)?.filter(|coding| coding.fits(&wire)) else {
        return Ok(wire);
    };
    // Decoding may take milliseconds, too long for a thread that serves other tasks. A panic in a
    // decoder is confined to this task (rule S47).
    let decoded = tokio::task::spawn_blocking(move || undo(coding, &wire, limit_bytes)).await;
    decoded.unwrap_or_else(|_| Err(coding.broken()))
}

/// Returns the coding that `Content-Encoding` names. Words that are not codings (`utf-8` and `none`
/// occur) are ignored.
fn coding(headers: &HeaderMap) -> Result<Option<Coding>, FetchError> {
    let lines = headers.get_all(CONTENT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    let names = lines.flat_map(|line| line.split(',')).map(|name| name.trim().to_ascii_lowercase());
    let mut codings = Vec::new();
    for name in names {
        codings.push(match name.as_str() {
            "gzip" | "x-gzip" => Coding::Gzip,
            "deflate" => Coding::Deflate,
            "br" => Coding::Brotli,
            "zstd" => Coding::Zstd,
            "compress" | "x-compress" => return Err(FetchError::Encoding(name)),
            _ => continue,
        });
    }
    match codings[..] {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err(FetchError::Encoding("one layer of content encoding".to_owned())),
    }
}

impl Coding {
    fn name(self) -> &'static str {
        match self {
            Coding::Gzip => "gzip",
            Coding::Deflate => "deflate",
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
        }
    }

    fn broken(self) -> FetchError {
        FetchError::Encoding(self.name().to_owned())
    }

    /// Returns whether the bytes begin as this coding requires. Brotli and raw deflate have no
    /// signature, so only decoding can tell; see [`undo`].
    fn fits(self, wire: &[u8]) -> bool {
        match self {
            Coding::Gzip => wire.starts_with(&[0x1f, 0x8b]),
            // A frame, or one of the sixteen kinds of skippable frames.
            Coding::Zstd => {
                wire.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
                    || (wire.len() >= 4
                        && wire[0] & 0xf0 == 0x50
                        && wire[1..4] == [0x2a, 0x4d, 0x18])
            }
            Coding::Deflate | Coding::Brotli => !wire.is_empty(),
        }
    }
}

fn undo(coding: Coding, wire: &Bytes, limit_bytes: u64) -> Result<Bytes, FetchError> {
    let cap = Cap { limit_bytes, wire_bytes: wire.len() as u64 };
    let decoded = match coding {
        Coding::Gzip => gunzip(wire, cap),
        Coding::Deflate => inflate(wire, cap),
        Coding::Brotli => {
            cap.read(brotli_decompressor::Decompressor::new(wire.as_ref(), 16 * 1024))
        }
        Coding::Zstd => unzstd(wire, cap),
    };
    match decoded {
        Err(Stopped::Broken)
            if matches!(coding, Coding::Deflate | Coding::Brotli) && is_text(wire) =>
        {
            Ok(wire.clone())
        }
        Err(Stopped::Broken) => Err(coding.broken()),
        Err(Stopped::TooLong(limit_bytes)) => Err(FetchError::BodyTooLarge { limit_bytes }),
        Ok(decoded) => Ok(decoded.into()),
    }
}

/// Decodes the members of a gzip file (RFC 1952 `#section-2.2`). Padding after the last member is
/// common and ignored.
fn gunzip(wire: &[u8], cap: Cap) -> Result<Vec<u8>, Stopped> {
    let mut rest = wire;
    let mut decoded = Vec::new();
    for _ in 0..MOST_MEMBERS {
        if !rest.starts_with(&[0x1f, 0x8b]) {
            return Ok(decoded);
        }
        cap.read_into(&mut decoded, flate2::bufread::GzDecoder::new(&mut rest))?;
    }
    Err(Stopped::Broken)
}

/// Decodes `deflate`, which is the zlib format; some servers omit the two-byte header.
fn inflate(wire: &[u8], cap: Cap) -> Result<Vec<u8>, Stopped> {
    let zlib = wire.len() >= 2
        && wire[0] & 0x0f == 8
        && u16::from_be_bytes([wire[0], wire[1]]).is_multiple_of(31);
    if zlib {
        cap.read(flate2::bufread::ZlibDecoder::new(wire))
    } else {
        cap.read(flate2::bufread::DeflateDecoder::new(wire))
    }
}

fn unzstd(wire: &[u8], cap: Cap) -> Result<Vec<u8>, Stopped> {
    let mut decoder =
        zstd::stream::read::Decoder::with_buffer(wire).map_err(|_| Stopped::Broken)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(|_| Stopped::Broken)?;
    cap.read(decoder)
}

/// Returns whether the bytes are an uncompressed document.
fn is_text(bytes: &[u8]) -> bool {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    matches!(text.trim_ascii_start().first(), Some(b'<' | b'{' | b'['))
}

enum Stopped {
    Broken,
    TooLong(u64),
}

/// The limits on the decoded length.
#[derive(Clone, Copy)]
struct Cap {
    limit_bytes: u64,
    wire_bytes: u64,
}

impl Cap {
    fn read(self, from: impl Read) -> Result<Vec<u8>, Stopped> {
        let mut decoded = Vec::new();
        self.read_into(&mut decoded, from)?;
        Ok(decoded)
    }

    fn read_into(self, decoded: &mut Vec<u8>, from: impl Read) -> Result<(), Stopped> {
        let by_ratio = (self.wire_bytes * RATIO).max(RATIO_FROM_BYTES);
        let limit = self.limit_bytes.min(by_ratio);
        let mut from = io::BufReader::with_capacity(16 * 1024, from);
        loop {
            let chunk = from.fill_buf().map_err(|_| Stopped::Broken)?;
            if chunk.is_empty() {
                return Ok(());
            }
            if (decoded.len() + chunk.len()) as u64 > limit {
                return Err(Stopped::TooLong(limit));
            }
            let taken = chunk.remaining();
            decoded.extend_from_slice(chunk);
            from.consume(taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use http::HeaderValue;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    const TEXT: &[u8] = b"<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>Tides</title></feed>";
    const MIB: u64 = 1024 * 1024;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut out = GzEncoder::new(Vec::new(), Compression::best());
        out.write_all(text).unwrap();
        out.finish().unwrap()
    }

    fn zlib(text: &[u8]) -> Vec<u8> {
        let mut out = ZlibEncoder::new(Vec::new(), Compression::fast());
        out.write_all(text).unwrap();
        out.finish().unwrap()
    }

    fn deflate(text: &[u8]) -> Vec<u8> {
        let mut out = DeflateEncoder::new(Vec::new(), Compression::fast());
        out.write_all(text).unwrap();
        out.finish().unwrap()
    }

    /// Encodes text as brotli without compression (RFC 7932 `#section-9.2`).
    fn stored_brotli(text: &[u8]) -> Vec<u8> {
        // Window bits 16 (one bit 0); not last (0); four nibbles of length (00); length minus one
        // in 16 bits; uncompressed (1); padding. An empty last block follows.
        let header = u32::try_from(text.len() - 1).unwrap() << 4 | 1 << 20;
        [&header.to_le_bytes()[..3], text, &[0b11]].concat()
    }

    async fn run(label: &'static str, wire: &[u8]) -> Result<Bytes, FetchError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(label));
        decode(&headers, Bytes::copy_from_slice(wire), 10 * MIB).await
    }

    #[tokio::test]
    async fn p37_every_coding_we_ask_for_is_undone_and_false_labels_are_ignored() {
        let zstd = zstd::encode_all(TEXT, 3).unwrap();
        let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 9][..], &zstd].concat();
        let (half, rest) = TEXT.split_at(20);
        #[rustfmt::skip]
        let cases: [(&str, &'static str, Vec<u8>); 17] = [
            ("gzip",                          "gzip",           gzip(TEXT)),
            ("its old name",                  "X-GZIP",         gzip(TEXT)),
            ("in two members",                "gzip",           [gzip(half), gzip(rest)].concat()),
            ("with padding after it",         "gzip",           [gzip(TEXT), vec![0; 8]].concat()),
            ("deflate as zlib",               "deflate",        zlib(TEXT)),
            ("deflate raw",                   "deflate",        deflate(TEXT)),
            ("brotli",                        "br",             stored_brotli(TEXT)),
            ("zstd",                          "zstd",           zstd.clone()),
            ("zstd after a skippable frame",  "zstd",           skippable),
            ("identity beside it",            "identity, gzip", gzip(TEXT)),
            ("no coding at all",              "utf-8",          TEXT.to_vec()),
            ("an empty label",                "",               TEXT.to_vec()),
            ("gzip, but it is not",           "gzip",           TEXT.to_vec()),
            ("zstd, but it is not",           "zstd",           TEXT.to_vec()),
            ("br, but it is not",             "br",             TEXT.to_vec()),
            ("deflate, but it is not",        "deflate",        TEXT.to_vec()),
            ("two, neither of them true",     "identity, none", TEXT.to_vec()),
        ];
        for (why, label, wire) in cases {
            let got = run(label, &wire).await.unwrap_or_else(|err| panic!("{why}: {err}"));
            assert_eq!(got.as_ref(), TEXT, "{why}");
        }
        assert!(run("gzip", b"").await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn p43_a_broken_body_is_an_error_and_never_a_short_document() {
        let long: Vec<u8> = (0..50_000_u32).flat_map(u32::to_le_bytes).collect();
        let cut = |wire: Vec<u8>| wire[..wire.len() - 9].to_vec();
        let cases = [
            ("gzip", cut(gzip(&long))),
            ("gzip", cut(gzip(TEXT))),
            ("deflate", cut(zlib(&long))),
            ("br", cut(stored_brotli(TEXT))),
            ("zstd", cut(zstd::encode_all(&long[..], 3).unwrap())),
            ("gzip, gzip", gzip(&gzip(TEXT))),
            ("gzip", gzip(b"").repeat(MOST_MEMBERS + 1)),
            ("compress", vec![0x1f, 0x9d, 0x90]),
        ];
        for (label, wire) in cases {
            let got = run(label, &wire).await.map(|body| body.len());
            assert!(matches!(got, Err(FetchError::Encoding(_))), "{label}: {got:?}");
        }
    }

    /// A brotli stream of endless zeros, a few bytes for each 16 MiB: one literal and copies of it.
    /// Created with the reference encoder from 64 MiB of zeros.
    const BROTLI_BOMB: &[u8] = include_bytes!("../../fixtures/fetch/zeros_64_mib.br");

    #[tokio::test]
    async fn s18_bombs_stop_at_the_limit() {
        let zeros = vec![0_u8; 64 * 1024 * 1024];
        let bombs = [
            ("gzip", gzip(&zeros)),
            ("deflate", zlib(&zeros)),
            ("zstd", zstd::encode_all(&zeros[..], 3).unwrap()),
            ("br", BROTLI_BOMB.to_vec()),
        ];
        for (label, bomb) in bombs {
            match run(label, &bomb).await {
                Err(FetchError::BodyTooLarge { limit_bytes }) => {
                    let want = (bomb.len() as u64 * RATIO).clamp(RATIO_FROM_BYTES, 10 * MIB);
                    assert_eq!(limit_bytes, want, "{label}");
                }
                other => panic!("{label}: {:?}", other.map(|body| body.len())),
            }
        }
    }

    #[tokio::test]
    async fn s18_a_zstd_window_above_eight_mebibytes_is_refused() {
        let mut out = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
        out.window_log(27).unwrap();
        out.include_contentsize(false).unwrap();
        out.write_all(TEXT).unwrap();
        out.flush().unwrap(); // prevents the encoder from shrinking the window to the text
        let wire = out.finish().unwrap();
        assert!(matches!(run("zstd", &wire).await, Err(FetchError::Encoding(_))));
    }

    proptest! {
        #[test]
        fn s47_no_bytes_make_a_decoder_panic(
            bytes in vec(any::<u8>(), 0..300),
            (flip, at) in (any::<u8>(), any::<Index>()),
        ) {
            let streams = [
                (Coding::Gzip, gzip(&bytes)),
                (Coding::Deflate, zlib(&bytes)),
                (Coding::Deflate, deflate(&bytes)),
                (Coding::Zstd, zstd::encode_all(&bytes[..], 1).unwrap()),
                (Coding::Brotli, BROTLI_BOMB.to_vec()),
                (Coding::Brotli, bytes),
            ];
            for (coding, mut stream) in streams {
                if !stream.is_empty() {
                    let at = at.index(stream.len());
                    stream[at] ^= flip;
                }
                let length = undo(coding, &stream.into(), 100_000).map_or(0, |body| body.len());
                prop_assert!(length <= 100_000);
            }
        }
    }
}
