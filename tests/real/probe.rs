//! Probes: packets of one node or pod to another, and the answers to them.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::namespace::Namespace;
use crate::socket;

/// What a message begins with: a question, or the answer to one.
const ASK: u8 = b'?';
const ANSWER: u8 = b'!';

/// How often a thread looks whether it is still wanted.
const TICK: Duration = Duration::from_millis(200);

/// Everyone who sends and answers probes in a mesh.
pub(crate) struct Stations {
    sockets: BTreeMap<Ipv4Addr, Vec<Arc<UdpSocket>>>,
    log: Arc<Log>,
    threads: Vec<JoinHandle<()>>,
    next: u64,
}

/// How far a probe came.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Fate {
    /// Whether it got there.
    pub(crate) arrived: bool,
    /// Whether the answer came back.
    pub(crate) answered: bool,
}

/// What became of all probes.
#[derive(Default)]
struct Log {
    fates: Mutex<BTreeMap<u64, Fate>>,
    changed: Condvar,
    is_over: AtomicBool,
}

impl Stations {
    /// Makes none.
    pub(crate) fn new() -> Self {
        Self { sockets: BTreeMap::new(), log: Arc::default(), threads: Vec::new(), next: 0 }
    }

    /// Adds one, which answers from now on.
    pub(crate) fn add(&mut self, namespace: &Namespace, address: Ipv4Addr) -> io::Result<()> {
        let socket = socket::open(namespace, address)?;
        socket.set_read_timeout(Some(TICK))?;
        let socket = Arc::new(socket);
        let sockets = self.sockets.entry(address).or_default();
        sockets.push(Arc::clone(&socket));
        let log = Arc::clone(&self.log);
        self.threads.push(thread::spawn(move || listen(&socket, &log)));
        Ok(())
    }

    /// Sends a probe from one address to another, and returns its number.
    pub(crate) fn send(&mut self, from: Ipv4Addr, to: SocketAddr) -> u64 {
        let number = self.next;
        self.next += 1;
        let mut message = vec![ASK];
        message.extend(number.to_be_bytes());
        // That there is no route is one of the things to be found out.
        let _ = self.sockets[&from][0].send_to(&message, to);
        number
    }

    /// Waits until a probe is answered, but not longer than `patience`.
    pub(crate) fn wait(&self, number: u64, patience: Duration) -> Fate {
        let end = Instant::now() + patience;
        let mut fates = self.log.fates.lock().unwrap();
        loop {
            let fate = fates.get(&number).copied().unwrap_or_default();
            let left = end.saturating_duration_since(Instant::now());
            if fate.answered || left.is_zero() {
                return fate;
            }
            fates = self.log.changed.wait_timeout(fates, left).unwrap().0;
        }
    }
}

impl Drop for Stations {
    fn drop(&mut self) {
        self.log.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It has printed why it panicked.
            let _ = thread.join();
        }
    }
}

impl Log {
    fn note(&self, message: &[u8], note: fn(&mut Fate)) {
        if let Ok(number) = message.try_into() {
            let mut fates = self.fates.lock().unwrap();
            note(fates.entry(u64::from_be_bytes(number)).or_default());
            self.changed.notify_all();
        }
    }
}

/// Answers what comes, and notes it.
fn listen(socket: &UdpSocket, log: &Log) {
    let mut message = [0; 64];
    while !log.is_over.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut message) else {
            continue;
        };
        match &message[..length] {
            [ASK, number @ ..] => {
                log.note(number, |fate| fate.arrived = true);
                let mut answer = vec![ANSWER];
                answer.extend(number);
                let _ = socket.send_to(&answer, from);
            }
            [ANSWER, number @ ..] => log.note(number, |fate| fate.answered = true),
            _ => {}
        }
    }
}
