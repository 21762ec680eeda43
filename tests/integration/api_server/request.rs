//! Requests, as they are read from a connection.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use percent_encoding::percent_decode_str;

/// The head of a request; clients send no body.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    headers: Vec<(String, String)>,
}

/// What TLS begins with.
const HANDSHAKE: u8 = 0x16;

impl Request {
    /// Reads one; none if the connection ends before it.
    pub(super) fn read(stream: &mut impl BufRead) -> io::Result<Option<Self>> {
        if stream.fill_buf()?.first() == Some(&HANDSHAKE) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let Some(first) = line(stream)? else {
            return Ok(None);
        };
        let mut words = first.split(' ');
        let method = words.next().unwrap_or_default().to_owned();
        let (path, query) = target(words.next().unwrap_or_default());
        let mut headers = Vec::new();
        while let Some(line) = line(stream)?.filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').unwrap();
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Some(Self { method, path, query, headers }))
    }

    /// Returns the value of a header, its name in lowercase.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let (_, value) = headers.find(|(header, _)| header == name)?;
        Some(value)
    }

    pub(super) fn accepts_gzip(&self) -> bool {
        self.header("accept-encoding").is_some_and(|encodings| encodings.contains("gzip"))
    }
}

/// Reads a line without its end; none if there is no more.
fn line(stream: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()))
}

/// Splits what is asked for into path and query. A proxy may be asked for a whole URL.
fn target(text: &str) -> (String, BTreeMap<String, String>) {
    let path = match text.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => text,
    };
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let path = percent_decode_str(path).decode_utf8().unwrap();
    let query = form_urlencoded::parse(query.as_bytes());
    (path.into_owned(), query.into_owned().collect())
}
