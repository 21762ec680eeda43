//! A server of lists that were made and packed before anyone asks.

use std::io::{self, BufRead, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use super::listing::LIMIT;

/// Answers with pages in gzip, as long as this process lives.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) pages: usize,
    /// How long the pages are, packed and not.
    pub(crate) packed: usize,
    pub(crate) plain: usize,
}

impl Server {
    /// Serves pages, of which every one but the last has `LIMIT` nodes.
    pub(crate) fn start(pages: impl Iterator<Item = Value>) -> io::Result<Self> {
        let (mut answers, mut plain) = (Vec::new(), 0);
        for page in pages {
            let page = page.to_string();
            plain += page.len();
            answers.push(answer(&page)?);
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let server = Self {
            address: listener.local_addr()?,
            pages: answers.len(),
            packed: answers.iter().map(Vec::len).sum(),
            plain,
        };
        let answers = Arc::new(answers);
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let answers = Arc::clone(&answers);
                // A client that leaves has what it wants.
                thread::spawn(move || drop(serve(&stream, &answers)));
            }
        });
        Ok(server)
    }

    /// What to ask for.
    pub(crate) fn target(page: usize) -> String {
        let more = match page {
            0 => String::new(),
            page => format!("&continue={}", page * LIMIT as usize),
        };
        format!("/api/v1/nodes?limit={LIMIT}{more}")
    }
}

fn answer(page: &str) -> io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(page.as_bytes())?;
    let packed = packed.finish()?;
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n\
         Content-Length: {}\r\n\r\n",
        packed.len()
    );
    Ok([head.as_bytes(), &packed].concat())
}

fn serve(stream: &TcpStream, answers: &[Vec<u8>]) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream).lines();
    while let Some(first) = lines.next().transpose()? {
        while lines.next().transpose()?.is_some_and(|it| !it.is_empty()) {}
        let answer = page(&first).and_then(|page| answers.get(page));
        match answer {
            Some(answer) => (&mut &*stream).write_all(answer)?,
            None => return Err(io::ErrorKind::InvalidInput.into()),
        }
    }
    Ok(())
}

/// Which page a request line asks for.
fn page(line: &str) -> Option<usize> {
    let target = line.strip_prefix("GET ")?.strip_suffix(" HTTP/1.1")?;
    let (path, query) = target.split_once('?')?;
    let value = |key| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(it, _)| *it == key)?;
        value.parse::<usize>().ok()
    };
    if path != "/api/v1/nodes" || value("limit")? != LIMIT as usize {
        return None;
    }
    Some(value("continue").unwrap_or(0) / LIMIT as usize)
}
