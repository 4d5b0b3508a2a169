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

#[cfg(test)]
mod tests;

use std::io::{self, BufRead, Read};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

use super::FetchError;
use super::body::{BodyMemory, WireBody};
use crate::document_budget::{DocumentMemory, Reservation, SMALL_BODY_BYTES};

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

/// Decodes the document in `wire`, up to `limit_bytes`, and reserves the memory that it takes from
/// now on.
///
/// How long a document is turns out only when it is decoded. So each is decoded as a small one
/// first, in the memory of its body; one that is longer waits for memory for large documents, and
/// is then decoded anew.
pub(super) async fn decode(
    headers: &HeaderMap,
    body: WireBody,
    limit_bytes: u64,
    memory: BodyMemory<'_>,
) -> Result<(Bytes, DocumentMemory), FetchError> {
    let WireBody { bytes: wire, reservation } = body;
    let Some(coding) = coding(headers)?.filter(|coding| coding.fits(&wire)) else {
        let memory = memory.documents.admit(&wire, memory.patience).await?;
        drop(reservation);
        return Ok((wire, memory));
    };
    decode_as(coding, (wire, Some(reservation)), limit_bytes, memory).await
}

/// Returns whether bytes begin as a gzip file does.
pub(super) fn is_gzip(bytes: &[u8]) -> bool {
    Coding::Gzip.fits(bytes)
}

/// Decodes a gzip file, with the limits of [`decode`].
pub(super) async fn unpack_gzip(
    file: &Bytes,
    limit_bytes: u64,
    memory: BodyMemory<'_>,
) -> Result<(Bytes, DocumentMemory), FetchError> {
    decode_as(Coding::Gzip, (file.clone(), None), limit_bytes, memory).await
}

async fn decode_as(
    coding: Coding,
    (wire, reservation): (Bytes, Option<Reservation>),
    limit_bytes: u64,
    memory: BodyMemory<'_>,
) -> Result<(Bytes, DocumentMemory), FetchError> {
    let BodyMemory { documents, patience } = memory;
    // Decoding may take milliseconds, too long for a thread that serves other tasks. A panic in a
    // decoder is confined to its thread (rule S47).
    let small_bytes = limit_bytes.min(SMALL_BODY_BYTES);
    let source = wire.clone();
    let small = documents.run_small(move || undo(coding, &source, small_bytes)).await;
    match small.unwrap_or_else(|| Err(coding.broken())) {
        Ok(decoded) => {
            let memory = documents.admit(&decoded, patience).await?;
            drop(reservation);
            Ok((decoded, memory))
        }
        Err(FetchError::BodyTooLarge { .. }) if small_bytes < limit_bytes => {
            let most_bytes = limit_bytes.min(Cap::by_ratio(wire.len() as u64));
            let decode = move || {
                let decoded = undo(coding, &wire, limit_bytes);
                drop((wire, reservation));
                decoded
            };
            let decoded = documents.admit_decoded(most_bytes, patience, decode).await?;
            decoded.unwrap_or_else(|| Err(coding.broken()))
        }
        Err(err) => Err(err),
    }
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
    /// Returns the most decoded bytes that a body of this length may have.
    fn by_ratio(wire_bytes: u64) -> u64 {
        (wire_bytes * RATIO).max(RATIO_FROM_BYTES)
    }

    fn read(self, from: impl Read) -> Result<Vec<u8>, Stopped> {
        let mut decoded = Vec::new();
        self.read_into(&mut decoded, from)?;
        Ok(decoded)
    }

    fn read_into(self, decoded: &mut Vec<u8>, from: impl Read) -> Result<(), Stopped> {
        let limit = self.limit_bytes.min(Cap::by_ratio(self.wire_bytes));
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
