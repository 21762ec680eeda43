//! Proxies: they lead every connection to one server, for any host.

use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use super::listener::{Listener, close};
use super::request::Request;

/// A proxy for HTTP and SOCKS 5.
pub(crate) struct Proxy {
    listener: Listener,
    visits: Arc<Mutex<Vec<Visit>>>,
}

/// A connection through a proxy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Visit {
    /// How the proxy was asked: `CONNECT`, `SOCKS`, or the method of a plain request.
    pub(crate) method: String,
    /// Where to: a host and port, or the path of a plain request.
    pub(crate) target: String,
    /// How the client showed who it is, if it did.
    pub(crate) authorization: Option<String>,
}

impl Proxy {
    /// Starts a proxy before a server.
    pub(crate) fn to(server: SocketAddr) -> Self {
        let visits = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&visits);
        let listener = Listener::start(move |client| {
            // Clients leave when they like.
            drop(serve(&client, server, &seen));
        });
        Self { listener, visits }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    pub(crate) fn visits(&self) -> Vec<Visit> {
        self.visits.lock().unwrap().clone()
    }
}

fn serve(client: &TcpStream, server: SocketAddr, visits: &Mutex<Vec<Visit>>) -> io::Result<()> {
    let mut first = [0];
    if client.peek(&mut first)? == 0 {
        return Ok(());
    }
    let mut reader = BufReader::new(client);
    let (visit, head) = match first {
        [5] => (socks(&mut reader)?, Vec::new()),
        _ => http(&mut reader)?,
    };
    visits.lock().unwrap().push(visit);
    let upstream = TcpStream::connect(server)?;
    (&upstream).write_all(&head)?;
    tunnel(&mut reader, &upstream)
}

/// Reads the head of a request, and returns what of it the server must see.
fn http(client: &mut BufReader<&TcpStream>) -> io::Result<(Visit, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte)?;
        head.extend(byte);
    }
    let request = Request::read(&mut head.as_slice())?.ok_or(io::ErrorKind::UnexpectedEof)?;
    if request.method == "CONNECT" {
        head.clear();
        client.get_mut().write_all(b"HTTP/1.1 200 \r\n\r\n")?;
    }
    let visit = Visit {
        authorization: request.header("proxy-authorization").map(str::to_owned),
        method: request.method,
        target: request.path,
    };
    Ok((visit, head))
}

/// RFC 1928, without a password.
fn socks(client: &mut BufReader<&TcpStream>) -> io::Result<Visit> {
    let [_, methods] = bytes(client)?;
    io::copy(&mut client.take(methods.into()), &mut io::sink())?;
    client.get_mut().write_all(&[5, 0])?;
    let [_, _, _, kind] = bytes(client)?;
    let host = if kind == 1 {
        let [a, b, c, d] = bytes(client)?;
        format!("{a}.{b}.{c}.{d}")
    } else {
        let [length] = bytes(client)?;
        let mut host = String::new();
        client.take(length.into()).read_to_string(&mut host)?;
        host
    };
    let port = u16::from_be_bytes(bytes(client)?);
    client.get_mut().write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
    Ok(Visit { method: "SOCKS".to_owned(), target: format!("{host}:{port}"), authorization: None })
}

fn bytes<const LENGTH: usize>(stream: &mut impl Read) -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Carries bytes both ways until one end closes.
fn tunnel(client: &mut BufReader<&TcpStream>, server: &TcpStream) -> io::Result<()> {
    let back = *client.get_ref();
    thread::scope(|scope| {
        scope.spawn(|| {
            drop(io::copy(&mut &*server, &mut &*back));
            close(back);
        });
        let sent = io::copy(client, &mut &*server);
        close(server);
        sent.map(drop)
    })
}
