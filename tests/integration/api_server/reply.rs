//! Replies: those of an API server, and wrong ones of other servers.

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use flate2::write::GzEncoder;
use flate2::{Compress, Compression, Crc, FlushCompress};
use serde_json::{Value, json};

use super::request::Request;

/// What comes back for a request.
pub(crate) enum Reply {
    /// A whole answer.
    Whole(Answer),
    /// The length of an answer, then half of it, then the end of the connection.
    Cut(Answer),
    /// The same in chunks: the last one is missing.
    CutChunks(Answer),
    /// Half of an answer of which the end is that of the connection.
    CutToFit(Answer),
    /// The end of the connection.
    HangUp,
    /// Nothing, while the client waits.
    Silence,
    /// A header that never ends, a byte at a time.
    SlowHead,
    /// A body that never ends, a byte at a time.
    SlowBody,
    /// A list whose only node is padded until the body has this many bytes.
    Flood(usize),
    /// The same, of which hardly anything is left in gzip.
    Bomb(usize),
}

/// A status, and what comes with it.
#[derive(Clone)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

/// From how many bytes on an API server packs, and Go's server sends chunks.
const PACKED: usize = 128 << 10;
const CHUNKED: usize = 2048;
/// Between two bytes of a slow reply.
const PAUSE: Duration = Duration::from_millis(50);
/// The size of a piece of padding.
const BLOCK: usize = 1 << 20;

impl Answer {
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: vec![("Content-Type", content_type.to_owned())], body: body.into() }
    }

    pub(crate) fn json(value: &Value) -> Self {
        Self::text(&value.to_string())
    }

    /// A JSON text; as Go writes it, it ends with a line break.
    pub(super) fn text(json: &str) -> Self {
        Self::new(200, "application/json", format!("{json}\n"))
    }

    /// A failure in the format of Kubernetes.
    pub(crate) fn failure(status: u16, reason: &str, message: &str) -> Self {
        Self::status([status.to_string().as_str(), reason, message], "{}", None)
    }

    /// A list that has been forgotten.
    pub(crate) fn expired() -> Self {
        let message = "The provided continue parameter is too old to display a consistent list \
                       result. You can start a new list without the continue parameter, or use \
                       the continue token in this response to retrieve the remainder of the \
                       results. Continuing with the provided token results in an inconsistent \
                       list - objects that were created, modified, or deleted between the time \
                       the first chunk was returned and now may show up in the list.";
        let metadata = r#"{"continue":"inconsistent"}"#;
        Self::status(["410", "Expired", message], metadata, None)
    }

    /// A user who may not list nodes.
    pub(crate) fn forbidden(user: &str) -> Self {
        let message = format!(
            r#"nodes is forbidden: User "{user}" cannot list resource "nodes" in API group "" at the cluster scope"#
        );
        let details = Some(r#"{"kind":"nodes"}"#);
        Self::status(["403", "Forbidden", &message], "{}", details)
    }

    /// Something that does not exist.
    pub(super) fn not_found(path: &str) -> Self {
        if path.starts_with("/apis/") {
            let text = "404 page not found\n";
            return Self::new(404, "text/plain; charset=utf-8", text);
        }
        let [.., "namespaces", _, kind @ ("secrets" | "services"), name] =
            path.split('/').collect::<Vec<&str>>()[..]
        else {
            let message = "the server could not find the requested resource";
            return Self::status(["404", "NotFound", message], "{}", Some("{}"));
        };
        let message = format!(r#"{kind} "{name}" not found"#);
        let details = format!(r#"{{"name":"{name}","kind":"{kind}"}}"#);
        Self::status(["404", "NotFound", &message], "{}", Some(&details))
    }

    /// A status with its fields in their order.
    fn status([code, reason, message]: [&str; 3], metadata: &str, details: Option<&str>) -> Self {
        let (reason, message) = (json!(reason), json!(message));
        let details = details.map_or_else(String::new, |it| format!(r#""details":{it},"#));
        let text = format!(
            r#"{{"kind":"Status","apiVersion":"v1","metadata":{metadata},"status":"Failure","message":{message},"reason":{reason},{details}"code":{code}}}"#
        );
        let mut answer = Self::text(&text);
        answer.status = code.parse().unwrap();
        answer
    }

    /// The answer of priority and fairness, which is not a Status.
    pub(crate) fn too_many(seconds: &str) -> Self {
        let body = "Too many requests, please try again later.\n";
        Self::new(429, "text/plain; charset=utf-8", body).header("Retry-After", seconds)
    }

    pub(crate) fn redirect(url: &str) -> Self {
        Self::new(302, "text/html", "").header("Location", url)
    }

    #[must_use]
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Returns it in the encoding of Go's server: in chunks if it is long, and in gzip if it is large and
    /// the client accepts that.
    fn bytes(&self, request: &Request) -> io::Result<Vec<u8>> {
        if self.body.len() <= CHUNKED {
            let head = self.head(&length(self.body.len()));
            return Ok([&head, self.body.as_slice()].concat());
        }
        let is_packed = PACKED <= self.body.len() && request.accepts_gzip();
        let (framing, body) = if is_packed {
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(&self.body)?;
            let framing = "Content-Encoding: gzip\r\nTransfer-Encoding: chunked";
            (framing, packed.finish()?)
        } else {
            ("Transfer-Encoding: chunked", self.body.clone())
        };
        let mut bytes = self.head(framing);
        for part in body.chunks(4096) {
            bytes.extend(chunk(part));
        }
        bytes.extend(chunk(&[]));
        Ok(bytes)
    }

    fn head(&self, framing: &str) -> Vec<u8> {
        let headers: String =
            self.headers.iter().map(|(name, value)| [name, ": ", value, "\r\n"].concat()).collect();
        format!("HTTP/1.1 {} \r\n{framing}\r\n{headers}\r\n", self.status).into_bytes()
    }

    fn half(&self) -> &[u8] {
        &self.body[..self.body.len() / 2]
    }
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self::Whole(answer)
    }
}

impl Reply {
    /// Writes it and returns whether the connection may live on.
    pub(super) fn write(&self, request: &Request, stream: &mut impl Write) -> io::Result<bool> {
        let page = Answer::new(200, "application/json", "");
        match self {
            Self::Whole(answer) => stream.write_all(&answer.bytes(request)?)?,
            Self::Cut(answer) => {
                let head = answer.head(&length(answer.body.len()));
                stream.write_all(&[&head, answer.half()].concat())?;
            }
            Self::CutChunks(answer) => {
                let head = answer.head("Transfer-Encoding: chunked");
                stream.write_all(&[head, chunk(answer.half())].concat())?;
            }
            Self::CutToFit(answer) => {
                let head = answer.head("Connection: close");
                stream.write_all(&[&head, answer.half()].concat())?;
            }
            Self::HangUp | Self::Silence => {}
            Self::SlowHead => {
                stream.write_all(b"HTTP/1.1 200 \r\nX-Slow: ")?;
                drip(stream)?;
            }
            Self::SlowBody => {
                stream.write_all(&page.head(&length(1 << 30)))?;
                drip(stream)?;
            }
            Self::Flood(bytes) => {
                let (start, end) = padded();
                stream.write_all(&page.head(&length(*bytes)))?;
                stream.write_all(start.as_bytes())?;
                pad(*bytes - start.len() - end.len(), stream)?;
                stream.write_all(end.as_bytes())?;
            }
            Self::Bomb(bytes) => {
                let bomb = bomb(*bytes);
                let framing = format!("Content-Encoding: gzip\r\n{}", length(bomb.len()));
                stream.write_all(&page.head(&framing))?;
                stream.write_all(&bomb)?;
            }
        }
        stream.flush()?;
        let is_whole = matches!(self, Self::Whole(_) | Self::Flood(_) | Self::Bomb(_));
        Ok(is_whole)
    }
}

fn length(bytes: usize) -> String {
    format!("Content-Length: {bytes}")
}

/// Returns a chunk of a body; an empty one is the last.
fn chunk(bytes: &[u8]) -> Vec<u8> {
    let length = format!("{:x}\r\n", bytes.len());
    [length.as_bytes(), bytes, b"\r\n"].concat()
}

/// Writes spaces until the other end is gone.
fn drip(stream: &mut impl Write) -> io::Result<()> {
    loop {
        stream.write_all(b" ")?;
        stream.flush()?;
        thread::sleep(PAUSE);
    }
}

/// What stands before the padding of a list, and after it.
fn padded() -> (String, String) {
    let list = json!({
        "kind": "NodeList",
        "apiVersion": "v1",
        "metadata": { "resourceVersion": "1" },
        "items": [{ "metadata": { "name": "n1", "annotations": { "padding": "|" } } }],
    })
    .to_string();
    let (start, end) = list.split_once('|').unwrap();
    (start.to_owned(), end.to_owned())
}

fn pad(bytes: usize, stream: &mut impl Write) -> io::Result<()> {
    let block = vec![b'x'; BLOCK];
    for _ in 0..bytes / BLOCK {
        stream.write_all(&block)?;
    }
    stream.write_all(&block[..bytes % BLOCK])
}

/// A padded list in gzip, of at least this many bytes.
///
/// Its blocks are packed once: with the same bytes before it, each packs to the same.
fn bomb(bytes: usize) -> Vec<u8> {
    let (start, end) = padded();
    let block = vec![b'x'; BLOCK];
    let blocks = bytes.div_ceil(BLOCK).max(2);

    let mut deflate = Compress::new(Compression::fast(), false);
    let mut packed = |bytes: &[u8], flush| {
        let mut packed = Vec::with_capacity(BLOCK);
        deflate.compress_vec(bytes, &mut packed, flush).unwrap();
        packed
    };
    let first = packed(&[start.as_bytes(), &block].concat(), FlushCompress::Sync);
    let again = packed(&block, FlushCompress::Sync);
    let last = packed(end.as_bytes(), FlushCompress::Finish);

    let mut sum = Crc::new();
    sum.update(start.as_bytes());
    let mut block_sum = Crc::new();
    block_sum.update(&block);
    for _ in 0..blocks {
        sum.combine(&block_sum);
    }
    let mut end_sum = Crc::new();
    end_sum.update(end.as_bytes());
    sum.combine(&end_sum);

    let header = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let trailer = [sum.sum().to_le_bytes(), sum.amount().to_le_bytes()].concat();
    [header, first, again.repeat(blocks - 1), last, trailer].concat()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn a_bomb_is_small_whole_and_json() {
        let bomb = bomb(4 * BLOCK);
        assert!(bomb.len() < BLOCK / 20, "{}", bomb.len());
        let mut text = String::new();
        GzDecoder::new(&bomb[..]).read_to_string(&mut text).unwrap();
        assert!(4 * BLOCK < text.len());
        let list: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(list["kind"], "NodeList");
    }
}
