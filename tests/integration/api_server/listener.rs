//! A listening socket, with a thread for each of its connections; all of them end with it.

use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// Listens on a port of its own until it is dropped.
pub(crate) struct Listener {
    address: SocketAddr,
    sockets: Sockets,
    thread: Option<JoinHandle<()>>,
}

/// Every connection there was, so that a thread which waits for one can be woken; none once it is
/// over.
type Sockets = Arc<Mutex<Option<Vec<TcpStream>>>>;

impl Listener {
    /// Serves every connection, which is closed afterwards.
    pub(crate) fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let sockets = Sockets::new(Mutex::new(Some(Vec::new())));
        Self {
            address: listener.local_addr().unwrap(),
            sockets: Arc::clone(&sockets),
            thread: Some(thread::spawn(move || accept(&listener, &sockets, serve))),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns how many connections there were.
    pub(crate) fn connections(&self) -> usize {
        self.sockets.lock().unwrap().as_ref().map_or(0, Vec::len)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let sockets = self.sockets.lock().unwrap().take().unwrap_or_default();
        for socket in sockets {
            close(&socket);
        }
        // Wakes the thread that accepts.
        if TcpStream::connect(self.address).is_err() {
            return;
        }
        let ended = self.thread.take().map(JoinHandle::join);
        if let Some(Err(panic)) = ended
            && !thread::panicking()
        {
            panic::resume_unwind(panic);
        }
    }
}

fn accept(
    listener: &TcpListener,
    sockets: &Sockets,
    serve: impl Fn(TcpStream) + Send + Sync + 'static,
) {
    let serve = Arc::new(serve);
    let mut threads = Vec::new();
    loop {
        let (stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        let socket = stream.try_clone().unwrap();
        match &mut *sockets.lock().unwrap() {
            Some(sockets) => sockets.push(stream.try_clone().unwrap()),
            None => break,
        }
        let serve = Arc::clone(&serve);
        threads.push(thread::spawn(move || {
            serve(stream);
            close(&socket);
        }));
    }
    for thread in threads {
        if let Err(panic) = thread.join() {
            panic::resume_unwind(panic);
        }
    }
}

/// Ends a connection even if it has other handles.
pub(super) fn close(socket: &TcpStream) {
    // The other end may have been first.
    drop(socket.shutdown(Shutdown::Both));
}
