//! Content codings, honest and malicious.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use http::HeaderValue;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::document_budget::{DocumentBudget, Share};

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
    let documents = DocumentBudget::new(256 * MIB, 2);
    let memory = BodyMemory { documents: &documents, patience: Duration::from_secs(1) };
    let reservation = documents.reserve(Share::LargeBodies, 10 * MIB, memory.patience).await?;
    let body = WireBody { bytes: Bytes::copy_from_slice(wire), reservation };
    let decoded = decode(&headers, body, 10 * MIB, memory).await?;
    Ok(decoded.0)
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
const BROTLI_BOMB: &[u8] = include_bytes!("../../../fixtures/fetch/zeros_64_mib.br");

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
