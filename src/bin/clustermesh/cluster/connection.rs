//! Connections: a server, and who we are to it, with everything that this needs at hand.

use std::env;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::time::Duration;

use clustermesh::diagnostic::Quoted;
use clustermesh::rules::clusters::{Fault, HOST, Weakness};
use http::uri::Authority;
use http::{HeaderValue, Uri};
use kube::client::RustlsTlsError;
use kube::config::{AuthInfo, Cluster, ExecAuthCluster};
use kube::{Client, Config};

use super::credentials::{
    authorities, certificates, check_token, inline_cluster, inline_user, token,
};
use super::kubeconfig::{SelectedContext, User};
use super::login;
use super::proxy::{Proxy, host_and_port, is_address, is_local};
use super::turn::{ListingTurn, aside};
use crate::secrets::Redactions;
use crate::threads;

/// The timeout for a connection.
const CONNECT: Duration = Duration::from_secs(15);

/// The number of threads that must be free for a DNS lookup by hyper.
const DNS: usize = 4;

/// The extra time to finish with a plugin that has used up its own timeout.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// The name of our own credentials in messages.
const POD: &str = "the pod's service account";

/// The service account's token in a pod.
const POD_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// The certificate authority of a pod's API server.
const POD_AUTHORITY: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

/// A server that can be asked.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) client: Client,
    /// The server, as `host:port`.
    pub(super) server: String,
    /// The proxy on the way.
    pub(super) proxy: Option<Proxy>,
    /// The user whose credentials are sent.
    pub(super) user: User,
    /// The secrets that no message may show.
    pub(super) hidden: Redactions,
    /// Reasons for which another server may answer.
    pub(super) weaknesses: Vec<Weakness>,
    /// The timeout for an answer.
    pub(super) patience: Duration,
    /// The timeout for a connection.
    pub(super) connect: Duration,
    /// The host name of the server, if it is contacted at an address that was looked up here.
    pub(super) host: Option<HeaderValue>,
    /// The turn of its cluster, which begins when the server answers; nothing if answers are short.
    pub(super) turn: Option<ListingTurn>,
}

/// The way to a server: the part for kube, and the part that clustermesh does itself.
struct ServerWay {
    config: Config,
    user: User,
    proxy: Option<Proxy>,
    hidden: Redactions,
}

/// A context whose files are read.
struct Settled {
    origin: String,
    cluster: Cluster,
    user: AuthInfo,
    named: User,
    url: Uri,
    proxy: Option<Proxy>,
    hidden: Redactions,
}

impl Connection {
    /// Opens the connection of a context.
    pub(super) async fn open(selected: SelectedContext, patience: Duration) -> Result<Self, Fault> {
        let origin = selected.origin.clone();
        let settled = aside(&origin, patience, || Settled::new(selected)).await?;
        let settled = if settled.user.exec.is_some() {
            let login = move || settled.logged_in(patience);
            aside(&origin, patience + AFTERWARDS, login).await?
        } else {
            settled
        };
        let connect = move || Self::new(settled.way()?, patience);
        aside(&origin, patience, connect).await
    }

    /// Opens the cluster that we run in.
    pub(super) async fn in_cluster(patience: Duration) -> Result<Self, Fault> {
        let connect = move || {
            let wrong = |problem: String| Fault::of_kubeconfig(POD, &problem);
            // kube would fail without the file of the namespace, which is not needed.
            let mut config = Config::new(pod_url().map_err(wrong)?);
            let authority = Path::new(POD_AUTHORITY);
            config.root_cert = Some(certificates(POD_AUTHORITY, authority).map_err(wrong)?);
            let token = token(POD_TOKEN, Path::new(POD_TOKEN)).map_err(wrong)?;
            let proxy = Proxy::before(&config.cluster_url, None).map_err(wrong)?;
            let mut hidden = Redactions::default();
            hidden.add(&token);
            hidden.add_userinfo(proxy.as_ref().map_or("", Proxy::userinfo));
            config.auth_info.token = Some(token.into());
            let way = ServerWay {
                config,
                user: User { origin: POD.to_owned(), has_credentials: true },
                proxy,
                hidden,
            };
            Self::new(way, patience)
        };
        aside(POD, patience, connect).await
    }

    fn new(way: ServerWay, patience: Duration) -> Result<Self, Fault> {
        let ServerWay { mut config, user, proxy, hidden } = way;
        let connect = patience.min(CONNECT);
        config.connect_timeout = Some(connect);
        config.read_timeout = Some(patience);
        config.reset_reader_on_write = true;
        // We know better what is worth another try.
        config.default_retry = false;
        config.proxy_url = proxy.as_ref().map(|it| it.url.clone());
        let server = host_and_port(&config.cluster_url);
        let credentials =
            |problem: &str| Fault::of_kubeconfig(&format!("the credentials for {server}"), problem);
        check_token(&config.auth_info).map_err(|problem| credentials(&problem))?;
        let mut weaknesses = Vec::new();
        if config.cluster_url.scheme_str() == Some("http") && !is_local(&config.cluster_url) {
            weaknesses.push(Weakness::Unencrypted);
        }
        if config.accept_invalid_certs {
            weaknesses.push(Weakness::UncheckedCertificate);
        }
        let host = match &proxy {
            _ if threads::can_start(DNS) => None,
            Some(proxy) if !is_address(&proxy.url) => {
                let problem = "cannot start a thread for the DNS lookup";
                return Err(proxy.unusable(&server, problem));
            }
            None if !is_address(&config.cluster_url) => Some(look_up(&mut config, connect)?),
            _ => None,
        };
        let client = Client::try_from(config).map_err(|error| credentials(unusable(&error)))?;
        Ok(Self {
            client,
            server,
            proxy,
            user,
            hidden,
            weaknesses,
            patience,
            connect,
            host,
            turn: None,
        })
    }

    /// Returns the server, and the proxy on the way.
    pub(super) fn way(&self) -> String {
        match &self.proxy {
            Some(proxy) => format!("{} through the proxy {}", self.server, proxy.address()),
            None => self.server.clone(),
        }
    }
}

impl Settled {
    /// Reads the files of a context, and checks its fields.
    fn new(selected: SelectedContext) -> Result<Self, Fault> {
        let SelectedContext { origin, cluster, user, named } = selected;
        let wrong = |problem: String| Fault::of_kubeconfig(&origin, &problem);
        let cluster = inline_cluster(cluster).map_err(wrong)?;
        let user = inline_user(user).map_err(wrong)?;
        let url = cluster_url(&cluster).map_err(wrong)?;
        let proxy = cluster.proxy_url.as_deref();
        let proxy = Proxy::before(&url, proxy).map_err(wrong)?;
        let mut hidden = Redactions::from_user(&user);
        hidden.add_userinfo(proxy.as_ref().map_or("", Proxy::userinfo));
        Ok(Self { origin, cluster, user, named, url, proxy, hidden })
    }

    /// Runs the login plugin, if there is nothing better.
    fn logged_in(mut self, patience: Duration) -> Result<Self, Fault> {
        let Some(mut plugin) = self.user.exec.take() else {
            return Ok(self);
        };
        if self.user.token.is_some() || self.user.username.is_some() {
            return Ok(self);
        }
        if plugin.provide_cluster_info {
            plugin.cluster = ExecAuthCluster::try_from(&self.cluster).ok();
        }
        let credentials = login::login(&plugin, &self.hidden, patience)?;
        if let Some(token) = credentials.token {
            self.hidden.add(&token);
            self.user.token = Some(token.trim().to_owned().into());
        }
        if let Some(identity) = credentials.identity {
            self.user.client_certificate_data = Some(identity.certificate.to_base64());
            self.user.client_key_data = Some(identity.key.to_base64().into());
        }
        Ok(self)
    }

    /// Returns what kube needs to know, all of it inline.
    fn way(self) -> Result<ServerWay, Fault> {
        let authorities = authorities(&self.cluster);
        let mut config = Config::new(self.url);
        config.root_cert =
            authorities.map_err(|problem| Fault::of_kubeconfig(&self.origin, &problem))?;
        config.accept_invalid_certs = self.cluster.insecure_skip_tls_verify.unwrap_or(false);
        config.disable_compression = self.cluster.disable_compression.unwrap_or(false);
        config.tls_server_name = self.cluster.tls_server_name;
        config.auth_info = self.user;
        Ok(ServerWay { config, user: self.named, proxy: self.proxy, hidden: self.hidden })
    }
}

/// Returns the fault of a server whose name does not resolve.
pub(super) fn unknown_host(host: &str) -> Fault {
    Fault::new(&HOST, format!("the name {} does not resolve", Quoted(host)))
}

/// Looks up the name of the server, as hyper does it on a thread, and returns the name.
fn look_up(config: &mut Config, patience: Duration) -> Result<HeaderValue, Fault> {
    let url = &config.cluster_url;
    let host = url.host().unwrap_or_default().to_owned();
    let unknown = || unknown_host(&host);
    let address = host_and_port(url);
    let addresses: Vec<SocketAddr> = address.to_socket_addrs().map_err(|_| unknown())?.collect();
    let is_open = |it: &&SocketAddr| TcpStream::connect_timeout(it, patience).is_ok();
    let open = addresses.iter().find(is_open).or(addresses.first()).ok_or_else(unknown)?;
    let header = HeaderValue::from_str(&address).map_err(|_| unknown())?;
    let mut parts = url.clone().into_parts();
    parts.authority = open.to_string().parse().ok();
    config.cluster_url = Uri::from_parts(parts).map_err(|_| unknown())?;
    config.tls_server_name.get_or_insert(host.clone());
    Ok(header)
}

/// Returns the API server of the pod's cluster, from the variables that Kubernetes sets in every
/// container.
fn pod_url() -> Result<Uri, String> {
    let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
    let host = variable("KUBERNETES_SERVICE_HOST");
    let port = variable("KUBERNETES_SERVICE_PORT").and_then(|port| port.parse::<u16>().ok());
    let url = host.zip(port).and_then(|(host, port)| {
        let host = match host.parse() {
            Ok(IpAddr::V6(address)) => format!("[{address}]"),
            _ => host,
        };
        format!("https://{host}:{port}").parse().ok()
    });
    url.ok_or_else(|| {
        "`KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT` are not set; this is not a pod"
            .to_owned()
    })
}

/// Returns why there is no client. The error itself may quote the private key.
fn unusable(error: &kube::Error) -> &'static str {
    use rustls::Error::InconsistentKeys;
    match error {
        kube::Error::RustlsTls(error) => match error {
            RustlsTlsError::InvalidPrivateKey(InconsistentKeys(_)) => {
                "the client key does not belong to the client certificate"
            }
            RustlsTlsError::InvalidPrivateKey(_) => {
                "the client key is not a valid RSA, ECDSA or Ed25519 key"
            }
            RustlsTlsError::AddRootCertificate(_) | RustlsTlsError::NoValidNativeRootCA(_) => {
                "a certificate of the certificate authority is not valid, or the system has no \
                 trusted certificates"
            }
            RustlsTlsError::InvalidServerName(_) => "`tls-server-name` is not a host name",
            _ => "the client certificate or its key is not valid",
        },
        kube::Error::HttpError(_) => {
            "`as`, `as-uid`, `as-groups` or `as-user-extra` contains characters that are not \
             allowed in HTTP headers"
        }
        _ => "they cannot be used",
    }
}

fn cluster_url(cluster: &Cluster) -> Result<Uri, String> {
    let server = cluster.server.as_deref().unwrap_or_default();
    let url: Uri =
        server.parse().map_err(|error| format!("`server` is not a valid URL: {error}"))?;
    let scheme = url.scheme_str();
    if !matches!(scheme, Some("http" | "https")) || url.host().is_none_or(str::is_empty) {
        return Err("`server` is not a URL such as `https://203.0.113.1:6443`".to_owned());
    }
    // hyper would take the scheme's port instead.
    let authority = url.authority().map_or("", Authority::as_str);
    let port = authority.rsplit_once(':').filter(|(_, it)| !it.contains(']'));
    if port.is_some() && url.port_u16().is_none() {
        return Err("the port in `server` is not a number from 1 to 65535".to_owned());
    }
    Ok(url)
}
