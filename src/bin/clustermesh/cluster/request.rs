//! Requests: each is repeated where that may help, its response is read up to a limit, and its user needs a right.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use clustermesh::name::{ClusterName, ServiceName};
use clustermesh::rules::clusters::{
    BUSY, CREDENTIALS, CUT, ELSEWHERE, Fault, LATER, OTHER_SERVER, OVERSIZED, REFUSED, RIGHT,
    UNREACHABLE, UNREADABLE, shown,
};
use http::header::{LOCATION, RETRY_AFTER};
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt as _;
use kube::client::Body;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde::Deserialize;
use tokio::time;

use super::connection::Connection;
use super::failure::{self, RequestFailure, useless};

/// The characters that are encoded: all but the unreserved ones (RFC 3986, section 2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The user agent, for the logs of the server.
const AGENT: &str = concat!("clustermesh/", env!("CARGO_PKG_VERSION"));

/// The largest page of a list that is believed, in bytes: 250 nodes of 130 KB.
pub(super) const PAGE: usize = 32 << 20;

/// The largest other answer that is believed, in bytes. A Secret has at most 1 MiB, a third more in
/// base64.
pub(super) const SMALL: usize = 4 << 20;

/// The largest error that is read, in bytes.
const ERROR: usize = 64 << 10;

/// The number of attempts to send a request to a server that fails.
const ATTEMPTS: u32 = 5;

/// The time for which a server may refuse connections: a restart takes about ten seconds.
const RESTART: Duration = Duration::from_secs(20);

/// The pause before the second attempt; it doubles up to four seconds.
const PAUSE: Duration = Duration::from_millis(250);

/// A request, with the right that it needs.
pub(super) struct ApiRequest {
    /// The path, with its query.
    pub(super) path: String,
    pub(super) right: Right,
    /// The largest answer that is believed, in bytes.
    pub(super) limit: usize,
}

/// The result of a request.
pub(super) enum ApiResponse<T> {
    /// This.
    With(T),
    /// It is no longer there: the page of a list whose token has expired, or a Secret.
    Missing(StatusCode),
}

/// The description of an error by an API server.
#[derive(Deserialize)]
struct ApiStatus {
    kind: String,
    message: Option<String>,
}

/// The failed attempts of a request.
#[derive(Default)]
struct Attempts {
    count: u32,
    /// The number of failures that count towards [`ATTEMPTS`].
    failed: u32,
    /// The time of the first failure.
    since: Option<Instant>,
    /// True if the connection was lost or refused, so that the server may have restarted.
    is_restart: bool,
}

impl Attempts {
    /// Adds an attempt, and returns the pause before the next one, or the fault if it was the last.
    fn pause(&mut self, failure: RequestFailure, patience: Duration) -> Result<Duration, Fault> {
        let (fault, wanted) = match failure {
            // A server that starts refuses every user until it has read its rules.
            RequestFailure::Final(fault) if self.is_restart && is_of_login(&fault) => (fault, None),
            RequestFailure::Final(fault) => return Err(fault),
            RequestFailure::Passing(fault, wanted) => (fault, wanted),
        };
        let pause = PAUSE * 2_u32.pow(self.count.min(ATTEMPTS - 1));
        let pause = wanted.map_or(pause, |wanted| wanted.max(PAUSE));
        let failing = self.since.get_or_insert_with(Instant::now).elapsed();
        self.count += 1;
        self.is_restart |= [&UNREACHABLE, &CUT].contains(&fault.kind);
        // These end within some time or not at all.
        let is_over = if *fault.kind == BUSY {
            patience < failing + pause
        } else if *fault.kind == UNREACHABLE || is_of_login(&fault) {
            patience.min(RESTART) < failing + pause
        } else {
            self.failed += 1;
            self.failed == ATTEMPTS || patience < pause
        };
        if is_over {
            return Err(fault.tried(self.count));
        }
        Ok(pause)
    }
}

/// Asks, and again after what may pass: too many requests, errors of the server, an answer that
/// ends early. This may only show when it is read.
pub(super) async fn answer<T>(
    connection: &Connection,
    wanted: &ApiRequest,
    mut read: impl FnMut(&[u8]) -> Result<T, RequestFailure>,
) -> Result<ApiResponse<T>, Fault> {
    let mut attempts = Attempts::default();
    loop {
        let failure = match ask(connection, wanted).await {
            Ok(ApiResponse::Missing(status)) => return Ok(ApiResponse::Missing(status)),
            Ok(ApiResponse::With(bytes)) => match read(&bytes) {
                Ok(answer) => return Ok(ApiResponse::With(answer)),
                Err(failure) => failure,
            },
            Err(failure) => failure,
        };
        let pause = attempts.pause(failure, connection.patience)?;
        time::sleep(pause).await;
    }
}

/// Returns a text as a part of a path or query.
pub(super) fn encoded(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, ENCODED)
}

/// Returns whether the server refuses the user.
fn is_of_login(fault: &Fault) -> bool {
    [&RIGHT, &CREDENTIALS].contains(&fault.kind)
}

/// Asks once. An answer may take the patience of the connection, without what its cluster waits for its turn
/// between the head of the answer and its body.
async fn ask(
    connection: &Connection,
    wanted: &ApiRequest,
) -> Result<ApiResponse<Vec<u8>>, RequestFailure> {
    let slow = |_| RequestFailure::Final(failure::slow(connection, connection.patience));
    let started = Instant::now();
    let head = time::timeout(connection.patience, send(connection, &wanted.path)).await;
    let response = head.map_err(slow)??;
    let left = connection.patience.saturating_sub(started.elapsed());
    if let Some(turn) = &connection.turn {
        turn.begin().await;
    }
    let content = time::timeout(left, content(response, connection, wanted)).await;
    content.map_err(slow)?
}

/// Sends a request, and waits for the head of the answer.
async fn send(connection: &Connection, path: &str) -> Result<Response<Body>, RequestFailure> {
    let mut request = Request::get(path)
        .header(http::header::ACCEPT, "application/json")
        .header(http::header::USER_AGENT, AGENT);
    if let Some(host) = &connection.host {
        request = request.header(http::header::HOST, host);
    }
    let request = request
        .body(Body::empty())
        .map_err(|error| RequestFailure::Final(useless(&UNREADABLE, &error)))?;
    let sent = connection.client.send(request).await;
    sent.map_err(|error| failure::of_request(&error, connection))
}

/// Reads the rest of an answer.
async fn content(
    response: Response<Body>,
    connection: &Connection,
    ApiRequest { right, limit, .. }: &ApiRequest,
) -> Result<ApiResponse<Vec<u8>>, RequestFailure> {
    let status = response.status();
    if status.is_success() {
        let bytes = body(response, *limit, connection).await?;
        return Ok(ApiResponse::With(bytes));
    }
    if matches!(status, StatusCode::GONE | StatusCode::NOT_FOUND) {
        return Ok(ApiResponse::Missing(status));
    }
    let (location, wanted) = headers(response.headers());
    if status.is_redirection() {
        let fault = redirected(connection, &location);
        return Err(RequestFailure::Final(fault));
    }
    let says = match body(response, ERROR, connection).await {
        Ok(bytes) => connection.hidden.hide(&said(&bytes)),
        // The status is sufficient.
        Err(_) => String::new(),
    };
    let fault = match status {
        StatusCode::UNAUTHORIZED => unauthorized(connection, right, &says),
        StatusCode::FORBIDDEN => forbidden(connection, right, &says),
        status => refused(status, &says),
    };
    if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
        return Err(RequestFailure::Passing(fault, wanted));
    }
    Err(RequestFailure::Final(fault))
}

/// Returns the fault of credentials that the server refuses.
pub(super) fn unauthorized(connection: &Connection, right: &Right, says: &str) -> Fault {
    let place = if right.is_of_operator { "the operator's cluster " } else { "" };
    let server = format!("{place}{}", shown(&connection.server));
    let (user, says) = (&connection.user, says_so(says));
    let origin = shown(&user.origin);
    if !user.has_credentials {
        let sentence = format!("{server} requires credentials, and {origin} has none (401{says})");
        return Fault::new(&CREDENTIALS, sentence).help(add_credentials(&origin));
    }
    let sentence = format!("{server} refused the credentials of {origin} (401{says})");
    Fault::new(&CREDENTIALS, sentence).help(format!("renew the credentials of {origin}"))
}

/// Returns the fault of a user without a right.
pub(super) fn forbidden(connection: &Connection, right: &Right, says: &str) -> Fault {
    // A right of such a user would be one of all users.
    let is_anonymous = says.contains("\"system:anonymous\"");
    let (user, says) = (&connection.user, says_so(says));
    let origin = shown(&user.origin);
    if !is_anonymous {
        let sentence = format!("the right to {} is missing (403{says})", right.name);
        return Fault::new(&RIGHT, sentence).help(right.help.clone());
    }
    let sentence = if user.has_credentials {
        format!("the server received no credentials from {origin} (403{says})")
    } else {
        format!("{origin} has no credentials (403{says})")
    };
    Fault::new(&RIGHT, sentence).help(add_credentials(&origin))
}

/// Returns the fault of a server that redirects. Text behind the host may be a secret.
pub(super) fn redirected(connection: &Connection, location: &str) -> Fault {
    let location = location.parse::<Uri>().ok();
    let host = location.as_ref().and_then(Uri::host);
    let to = shown(&connection.hidden.hide(host.unwrap_or("another path")));
    let sentence = format!("the server redirects to {to}, which clustermesh does not follow");
    Fault::new(&ELSEWHERE, sentence)
}

fn add_credentials(origin: &str) -> String {
    format!("add a token, a client certificate or a login plugin (`exec`) to {origin}")
}

/// Returns the fault of a server that refused for no reason of the user.
pub(super) fn refused(status: StatusCode, says: &str) -> Fault {
    let reason = format!(" with {}{}", status.as_u16(), says_so(says));
    let of = |kind| Fault::new(kind, "the server responded").counted(reason);
    match status.as_u16() {
        404 | 405 => of(&REFUSED).help(OTHER_SERVER),
        429 => of(&BUSY),
        410 | 500.. => of(&REFUSED).help(LATER),
        _ => of(&REFUSED),
    }
}

fn says_so(says: &str) -> String {
    match says.trim() {
        "" => String::new(),
        says => format!(": {}", shown(says)),
    }
}

/// Returns where we are sent, and when we are to come again.
fn headers(headers: &HeaderMap) -> (String, Option<Duration>) {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let wanted = text(RETRY_AFTER).and_then(|text| text.trim().parse().ok());
    let location = text(LOCATION).unwrap_or_default().to_owned();
    (location, wanted.map(Duration::from_secs))
}

/// Reads a body of at most `limit` bytes; what is compressed counts unpacked.
async fn body(
    response: Response<Body>,
    limit: usize,
    connection: &Connection,
) -> Result<Vec<u8>, RequestFailure> {
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| failure::of_body(&error, connection))?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        if limit - bytes.len() < data.len() {
            let problem = format!("it is larger than {} MiB", limit >> 20);
            return Err(RequestFailure::Final(useless(&OVERSIZED, &problem)));
        }
        bytes.extend_from_slice(data);
    }
    Ok(bytes)
}

/// Returns the message of an error of Kubernetes. Answers of other servers may contain secrets that
/// must not get into logs, and a kubeconfig from a Secret may lead to any server.
fn said(bytes: &[u8]) -> String {
    let status = serde_json::from_slice(bytes).ok().filter(|it: &ApiStatus| it.kind == "Status");
    status.and_then(|it| it.message).unwrap_or_default()
}

/// A required right.
#[derive(Clone)]
pub(super) struct Right {
    /// The right, as a verb and an object.
    pub(super) name: Cow<'static, str>,
    /// Whether it is one in the operator's cluster.
    is_of_operator: bool,
    /// The help if it is missing.
    pub(super) help: Cow<'static, str>,
}

/// To list the nodes of the cluster.
pub(super) const LIST_NODES: Right = Right {
    name: Cow::Borrowed("`list` `nodes`"),
    is_of_operator: false,
    help: Cow::Borrowed("`clustermesh rbac` prints the manifests that grant this right"),
};

/// To list Kilo's Peers in the cluster.
pub(super) const LIST_PEERS: Right = Right {
    name: Cow::Borrowed("`list` `peers.kilo.squat.ai`"),
    is_of_operator: false,
    help: Cow::Borrowed("`clustermesh rbac --peers` prints the manifests that grant this right"),
};

/// To read the guard of the cluster.
pub(super) const GET_GUARD: Right = Right {
    name: Cow::Borrowed(
        "`get` `validatingadmissionpolicies` and `validatingadmissionpolicybindings`",
    ),
    is_of_operator: false,
    help: Cow::Borrowed("`clustermesh rbac --peers` prints the manifests that grant this right"),
};

/// To list the pods of the cluster. Without it, their addresses are not compared.
pub(super) const LIST_PODS: Right = Right {
    name: Cow::Borrowed("`list` `pods`"),
    is_of_operator: false,
    help: Cow::Borrowed("`clustermesh rbac --pods` prints the manifests that grant this right"),
};

/// To list the ranges of the Services of the cluster. Without it, they are not known.
pub(super) const LIST_SERVICE_RANGES: Right = Right {
    name: Cow::Borrowed("`list` `servicecidrs.networking.k8s.io`"),
    is_of_operator: false,
    help: Cow::Borrowed("write the `--service-cidr` of the cluster into the mesh"),
};

/// To list the operator's ClusterMesh objects in its cluster.
pub(super) const LIST_MESHES: Right = Right {
    name: Cow::Borrowed("`list` `clustermeshes.kilo.squat.ai`"),
    is_of_operator: true,
    help: Cow::Borrowed(
        "grant this right in the operator's cluster, or copy the objects into mesh.yaml: `kubectl \
         get clustermeshes -A -o yaml`",
    ),
};

impl Right {
    /// Returns the right to read one Service of a cluster.
    pub(super) fn get_service(cluster: &ClusterName, service: &ServiceName) -> Self {
        Self {
            name: format!("`get` the Service `{service}`").into(),
            is_of_operator: false,
            help: format!(
                "`clustermesh rbac --services {cluster}` prints the manifests that grant this right"
            )
            .into(),
        }
    }

    /// Returns the right to read one Secret.
    pub(super) fn get_secret(namespace: &str, name: &str) -> Self {
        let secret = shown(&format!("{namespace}/{name}"));
        Self {
            name: format!("`get` the Secret `{secret}`").into(),
            is_of_operator: true,
            help: format!(
                "`clustermesh rbac --secret {secret}` prints the manifests that grant this right in \
                 the operator's cluster"
            )
            .into(),
        }
    }
}

#[cfg(test)]
mod tests;
