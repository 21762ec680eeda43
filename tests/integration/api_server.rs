//! An API server that tests can script: it serves nodes, Secrets and Services, and fails in every way.

use std::collections::BTreeMap;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

pub(crate) use identity::{Authority, Identity};
pub(crate) use kubeconfig::{Context, credential, kubeconfig};
pub(crate) use listener::Listener;
pub(crate) use pages::{More, list};
pub(crate) use proxy::{Proxy, Visit};
pub(crate) use reply::{Answer, Reply};
pub(crate) use request::Request;

mod identity;
mod kubeconfig;
mod listener;
mod pages;
mod proxy;
mod reply;
mod request;

mod tests;

/// The path of the list of nodes.
pub(crate) const NODES: &str = "/api/v1/nodes";

/// The paths of Kilo's group and of the list of Peers.
const GROUP: &str = "/apis/kilo.squat.ai";
const PEERS: &str = "/apis/kilo.squat.ai/v1alpha1/peers";

/// A server that stops when it is dropped.
pub(crate) struct ApiServer {
    listener: Listener,
    site: Arc<Site>,
    scheme: &'static str,
}

/// What a server will be.
#[derive(Default)]
pub(crate) struct Setup {
    nodes: Vec<Value>,
    objects: BTreeMap<String, Value>,
    login: Option<Login>,
    fault: Option<Fault>,
    tls: Option<Arc<ServerConfig>>,
}

/// What shows that a client may ask.
pub(crate) enum Login {
    /// The value of its `Authorization`.
    Authorization(String),
    /// A certificate of the authority that the server knows.
    Certificate,
}

/// What comes back instead of the answer, for a request and its number, beginning with 1.
type Fault = Box<dyn Fn(&Request, usize) -> Option<Reply> + Send + Sync>;

/// What the connections of a server share.
struct Site {
    nodes: Mutex<Vec<Value>>,
    peers: Mutex<Option<Vec<Value>>>,
    objects: BTreeMap<String, Value>,
    login: Option<Login>,
    fault: Option<Fault>,
    requests: Mutex<Vec<Request>>,
    /// How many requests are being answered, and the most there were.
    busy: [AtomicUsize; 2],
}

impl Login {
    pub(crate) fn token(token: &str) -> Self {
        Self::Authorization(format!("Bearer {token}"))
    }

    pub(crate) fn password(user: &str, password: &str) -> Self {
        let basic = STANDARD.encode(format!("{user}:{password}"));
        Self::Authorization(format!("Basic {basic}"))
    }
}

impl Setup {
    pub(crate) fn nodes(nodes: &[Value]) -> Self {
        Self { nodes: nodes.to_vec(), ..Self::default() }
    }

    /// Adds a Secret with this value under this key.
    pub(crate) fn secret(mut self, [namespace, name, key]: [&str; 3], value: &str) -> Self {
        let secret = json!({
            "kind": "Secret",
            "apiVersion": "v1",
            "metadata": { "name": name, "namespace": namespace },
            "data": { key: STANDARD.encode(value) },
            "type": "Opaque",
        });
        let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
        self.objects.insert(path, secret);
        self
    }

    /// Adds a Service.
    pub(crate) fn service(mut self, [namespace, name]: [&str; 2], spec: &Value) -> Self {
        let service = json!({
            "kind": "Service",
            "apiVersion": "v1",
            "metadata": { "name": name, "namespace": namespace },
            "spec": spec,
        });
        let path = format!("/api/v1/namespaces/{namespace}/services/{name}");
        self.objects.insert(path, service);
        self
    }

    /// Adds another object, or a list of objects, at its path.
    pub(crate) fn object(mut self, path: &str, object: Value) -> Self {
        self.objects.insert(path.to_owned(), object);
        self
    }

    pub(crate) fn login(mut self, login: Login) -> Self {
        self.login = Some(login);
        self
    }

    /// Lets it fail, even before it asks who is there.
    pub(crate) fn fault(
        mut self,
        fault: impl Fn(&Request, usize) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        self.fault = Some(Box::new(fault));
        self
    }

    /// Enables TLS.
    pub(crate) fn tls(mut self, identity: &Identity) -> Self {
        self.tls = Some(Arc::new(identity.server(None)));
        self
    }

    /// Enables TLS, and identifies users by certificates of an authority.
    pub(crate) fn tls_for(mut self, identity: &Identity, users: &Authority) -> Self {
        self.tls = Some(Arc::new(identity.server(Some(users))));
        self
    }

    pub(crate) fn start(self) -> ApiServer {
        let site = Arc::new(Site {
            nodes: Mutex::new(self.nodes),
            peers: Mutex::default(),
            objects: self.objects,
            login: self.login,
            fault: self.fault,
            requests: Mutex::default(),
            busy: Default::default(),
        });
        let (served, tls) = (Arc::clone(&site), self.tls);
        let scheme = if tls.is_some() { "https" } else { "http" };
        let listener = Listener::start(move |stream| {
            // Clients leave when they like, and some do not like our certificate.
            drop(match &tls {
                None => served.serve(stream, |_| false),
                Some(config) => served.serve_tls(stream, config),
            });
        });
        ApiServer { listener, site, scheme }
    }
}

impl ApiServer {
    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address())
    }

    /// Serves other nodes from now on.
    pub(crate) fn change(&self, nodes: &[Value]) {
        *self.site.nodes.lock().unwrap() = nodes.to_vec();
    }

    /// Has Kilo's CRD and these Peers from now on.
    pub(crate) fn apply(&self, peers: &[Value]) {
        *self.site.peers.lock().unwrap() = Some(peers.to_vec());
    }

    /// Returns every request so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.site.requests.lock().unwrap().clone()
    }

    /// Returns how many connections there were, also those on which nothing was asked.
    pub(crate) fn connections(&self) -> usize {
        self.listener.connections()
    }

    /// Returns the maximum number of parallel requests.
    pub(crate) fn busiest(&self) -> usize {
        self.site.busy[1].load(Ordering::SeqCst)
    }
}

/// Kilo's group as discovery shows it.
fn group() -> Answer {
    let version = r#"{"groupVersion":"kilo.squat.ai/v1alpha1","version":"v1alpha1"}"#;
    Answer::text(&format!(
        r#"{{"kind":"APIGroup","apiVersion":"v1","name":"kilo.squat.ai","versions":[{version}],"preferredVersion":{version}}}"#
    ))
}

impl Site {
    fn serve_tls(&self, stream: TcpStream, config: &Arc<ServerConfig>) -> io::Result<()> {
        let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        let stream = StreamOwned::new(connection, stream);
        self.serve(stream, |stream| stream.conn.peer_certificates().is_some())
    }

    /// Answers what is asked on a connection.
    fn serve<S: Read + Write>(&self, stream: S, is_known: fn(&S) -> bool) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let request = match Request::read(&mut stream) {
                Ok(Some(request)) => request,
                Ok(None) => break,
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    stream.get_mut().write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")?;
                    break;
                }
                Err(error) => return Err(error),
            };
            let [busy, busiest] = &self.busy;
            busiest.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let reply = self.reply(&request, is_known(stream.get_ref()));
            if matches!(reply, Reply::Silence) {
                io::copy(&mut stream, &mut io::sink())?;
            }
            // Before the client can know the answer, and ask again.
            busy.fetch_sub(1, Ordering::SeqCst);
            if !reply.write(&request, stream.get_mut())? {
                break;
            }
        }
        Ok(())
    }

    fn reply(&self, request: &Request, is_known: bool) -> Reply {
        let mut requests = self.requests.lock().unwrap();
        requests.push(request.clone());
        let number = requests.len();
        drop(requests);
        let fault = self.fault.as_ref();
        fault
            .and_then(|fault| fault(request, number))
            .unwrap_or_else(|| self.answer(request, is_known).into())
    }

    fn answer(&self, request: &Request, is_known: bool) -> Answer {
        if !self.lets_in(request, is_known) {
            return Answer::failure(401, "Unauthorized", "Unauthorized");
        }
        if request.method != "GET" {
            let message = "the server does not allow this method on the requested resource";
            return Answer::failure(405, "MethodNotAllowed", message);
        }
        if request.path == NODES {
            return pages::page(&self.nodes.lock().unwrap(), request);
        }
        if let Some(peers) = &*self.peers.lock().unwrap() {
            match request.path.as_str() {
                GROUP => return group(),
                PEERS => return pages::custom("PeerList", peers, request),
                _ => {}
            }
        }
        match self.objects.get(&request.path) {
            Some(object) => Answer::json(object),
            None => Answer::not_found(&request.path),
        }
    }

    fn lets_in(&self, request: &Request, is_known: bool) -> bool {
        match &self.login {
            None => true,
            Some(Login::Authorization(expected)) => {
                request.header("authorization") == Some(expected)
            }
            Some(Login::Certificate) => is_known,
        }
    }
}
