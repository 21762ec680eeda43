//! Connections: a server, and who we are to it, with everything that this needs at hand.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clustermesh::rules::clusters::{Fault, Weakness};
use http::Uri;
use kube::config::{AuthInfo, Cluster, ExecAuthCluster};
use kube::{Client, Config};

use super::aside::aside;
use super::credentials::{authorities, check_token, inline_cluster, inline_user, token};
use super::hidden::Hidden;
use super::kubeconfig::Selected;
use super::login;
use super::proxy::{Proxy, host_and_port, is_local};

/// How long a server may take to be reached at all.
const CONNECT: Duration = Duration::from_secs(15);

/// How long it may take to be done with a plugin that took all the time it had.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// What a fault of our own credentials is a fault of.
const POD: &str = "the pod's service account";

/// The service account's token in a pod.
const POD_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// A server that can be asked.
#[derive(Clone)]
pub(super) struct Connection {
    /// The client.
    pub(super) client: Client,
    /// The server, as `host:port`.
    pub(super) server: String,
    /// The proxy on the way.
    pub(super) proxy: Option<Proxy>,
    /// What no message may show.
    pub(super) hidden: Hidden,
    /// Why it may be another that answers.
    pub(super) weaknesses: Vec<Weakness>,
    /// How long an answer may take.
    pub(super) patience: Duration,
    /// How long it may take to be reached.
    pub(super) connect: Duration,
}

/// What kube needs to know, and what it need not.
struct Way {
    config: Config,
    proxy: Option<Proxy>,
    hidden: Hidden,
}

/// A context whose files are read.
struct Settled {
    origin: String,
    cluster: Cluster,
    user: AuthInfo,
    url: Uri,
    proxy: Option<Proxy>,
    hidden: Hidden,
}

impl Connection {
    /// Opens what a context says.
    pub(super) async fn open(selected: Selected, patience: Duration) -> Result<Self, Fault> {
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
            let wrong = |problem: String| Fault::Kubeconfig {
                origin: POD.to_owned(),
                problem,
            };
            let mut config = Config::incluster().map_err(|error| wrong(error.to_string()))?;
            let token = token(Path::new(POD_TOKEN)).map_err(wrong)?;
            let proxy = Proxy::before(&config.cluster_url, None).map_err(wrong)?;
            let mut hidden = Hidden::default();
            hidden.add(&token);
            hidden.add_proxy(proxy.as_ref());
            config.auth_info.token_file = None;
            config.auth_info.token = Some(token.into());
            let way = Way {
                config,
                proxy,
                hidden,
            };
            Self::new(way, patience)
        };
        aside(POD, patience, connect).await
    }

    fn new(way: Way, patience: Duration) -> Result<Self, Fault> {
        let Way {
            mut config,
            proxy,
            hidden,
        } = way;
        let connect = patience.min(CONNECT);
        config.connect_timeout = Some(connect);
        config.read_timeout = Some(patience);
        config.reset_reader_on_write = true;
        // We know better what is worth another try.
        config.default_retry = false;
        config.proxy_url = proxy.as_ref().map(|it| it.url.clone());
        let server = host_and_port(&config.cluster_url);
        let credentials = |problem: String| Fault::Kubeconfig {
            origin: format!("the credentials for {server}"),
            problem,
        };
        check_token(&config.auth_info).map_err(credentials)?;
        let mut weaknesses = Vec::new();
        if config.cluster_url.scheme_str() == Some("http") && !is_local(&config.cluster_url) {
            weaknesses.push(Weakness::Unencrypted);
        }
        if config.accept_invalid_certs {
            weaknesses.push(Weakness::UncheckedCertificate);
        }
        let client = Client::try_from(config)
            .map_err(|error| credentials(hidden.hide(&error.to_string())))?;
        Ok(Self {
            client,
            server,
            proxy,
            hidden,
            weaknesses,
            patience,
            connect,
        })
    }

    /// Returns the server, and the proxy on the way.
    pub(super) fn way(&self) -> String {
        match &self.proxy {
            Some(proxy) => format!("{} by way of the proxy {}", self.server, proxy.address()),
            None => self.server.clone(),
        }
    }
}

impl Settled {
    /// Reads what a context keeps in files, and looks at what it says.
    fn new(selected: Selected) -> Result<Self, Fault> {
        let Selected {
            origin,
            cluster,
            user,
        } = selected;
        let wrong = |problem: String| Fault::Kubeconfig {
            origin: origin.clone(),
            problem,
        };
        let cluster = inline_cluster(cluster).map_err(wrong)?;
        let user = inline_user(user).map_err(wrong)?;
        let url = cluster_url(&cluster).map_err(wrong)?;
        let proxy = cluster.proxy_url.as_deref();
        let proxy = Proxy::before(&url, proxy).map_err(wrong)?;
        let mut hidden = Hidden::of(&user);
        hidden.add_proxy(proxy.as_ref());
        Ok(Self {
            origin,
            cluster,
            user,
            url,
            proxy,
            hidden,
        })
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
        if let (Some(certificate), Some(key)) = (
            credentials.client_certificate_data,
            credentials.client_key_data,
        ) {
            self.user.client_certificate_data = Some(STANDARD.encode(certificate));
            self.user.client_key_data = Some(STANDARD.encode(key).into());
        }
        Ok(self)
    }

    /// Returns what kube needs to know, all of it inline.
    fn way(self) -> Result<Way, Fault> {
        let authorities = authorities(&self.cluster);
        let mut config = Config::new(self.url);
        config.root_cert = authorities.map_err(|problem| Fault::Kubeconfig {
            origin: self.origin,
            problem,
        })?;
        config.accept_invalid_certs = self.cluster.insecure_skip_tls_verify.unwrap_or(false);
        config.disable_compression = self.cluster.disable_compression.unwrap_or(false);
        config.tls_server_name = self.cluster.tls_server_name;
        config.auth_info = self.user;
        Ok(Way {
            config,
            proxy: self.proxy,
            hidden: self.hidden,
        })
    }
}

fn cluster_url(cluster: &Cluster) -> Result<Uri, String> {
    let server = cluster.server.as_deref().unwrap_or_default();
    let url: Uri = server
        .parse()
        .map_err(|error| format!("`server` is no URL: {error}"))?;
    let scheme = url.scheme_str();
    if !matches!(scheme, Some("http" | "https")) || url.host().is_none_or(str::is_empty) {
        return Err("`server` is no URL, such as https://203.0.113.1:6443".to_owned());
    }
    Ok(url)
}
