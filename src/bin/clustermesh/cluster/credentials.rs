//! Credentials: what a kubeconfig says of server and user, with everything that stands elsewhere.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use kube::config::{AuthInfo, Cluster};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::Value;

/// The largest file of credentials that is read, in bytes.
const CREDENTIALS: u64 = 1 << 20;

/// Reads what a cluster keeps in files; a path is known only to who wrote the kubeconfig.
pub(super) fn inline_cluster(mut cluster: Cluster) -> Result<Cluster, String> {
    if cluster.certificate_authority_data.is_none()
        && let Some(path) = cluster.certificate_authority.take()
    {
        let file = text(Path::new(&path))?;
        cluster.certificate_authority_data = Some(STANDARD.encode(file));
    }
    Ok(cluster)
}

/// Reads what a user keeps in files.
pub(super) fn inline_user(mut user: AuthInfo) -> Result<AuthInfo, String> {
    if let Some(path) = user.token_file.take() {
        // The file is the newer one, if it can be read.
        match token(Path::new(&path)) {
            Ok(token) => user.token = Some(token.into()),
            Err(problem) if user.token.is_none() => return Err(problem),
            Err(_) => {}
        }
    }
    let certificate = user.client_certificate.take();
    if let (None, Some(path)) = (&user.client_certificate_data, certificate) {
        user.client_certificate_data = Some(STANDARD.encode(text(Path::new(&path))?));
    }
    let key = user.client_key.take();
    if let (None, Some(path)) = (&user.client_key_data, key) {
        user.client_key_data = Some(STANDARD.encode(text(Path::new(&path))?).into());
    }
    if user.client_certificate_data.is_some() != user.client_key_data.is_some() {
        return Err("a client certificate and its key come together".to_owned());
    }
    let says_more = user.impersonate_uid.is_some()
        || user
            .impersonate_groups
            .as_ref()
            .is_some_and(|it| !it.is_empty())
        || user
            .impersonate_user_extra
            .as_ref()
            .is_some_and(|it| !it.is_empty());
    if says_more && user.impersonate.is_none() {
        return Err(
            "`as-uid`, `as-groups` and `as-user-extra` are nothing without `as`".to_owned(),
        );
    }
    if let Some(provider) = &user.auth_provider
        && (provider.name != "oidc" || !provider.config.contains_key("id-token"))
    {
        return Err(
            "its `auth-provider` is one that kubectl has not known since 1.26; use an `exec` plugin"
                .to_owned(),
        );
    }
    Ok(user)
}

/// Returns who may sign the server's certificate; none for whom the system trusts.
pub(super) fn authorities(cluster: &Cluster) -> Result<Option<Vec<Vec<u8>>>, String> {
    let Some(data) = cluster.certificate_authority_data.as_deref() else {
        return Ok(None);
    };
    let pem = STANDARD
        .decode(data.trim())
        .map_err(|_| "`certificate-authority-data` is no base64".to_owned())?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem)
        .map(|certificate| certificate.map(|it| it.to_vec()))
        .collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(Some(certificates)),
        _ => Err("the certificate authority is no PEM certificate".to_owned()),
    }
}

/// Refuses a token that no header can hold: kube would panic.
pub(super) fn check_token(user: &AuthInfo) -> Result<(), String> {
    let written = serde_json::to_value(user).unwrap_or_default();
    let token = written.get("token").and_then(Value::as_str);
    match HeaderValue::from_str(token.unwrap_or_default()) {
        Ok(_) => Ok(()),
        Err(_) => Err("the token has characters that no token has".to_owned()),
    }
}

/// Reads the token in a file.
pub(super) fn token(path: &Path) -> Result<String, String> {
    match text(path)?.trim() {
        "" => Err(format!("there is no token in {}", path.display())),
        token => Ok(token.to_owned()),
    }
}

/// Reads a file of credentials.
fn text(path: &Path) -> Result<String, String> {
    let read = || -> io::Result<String> {
        // Before it is opened: opening a pipe would wait for a writer.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let mut text = String::new();
        let limit = CREDENTIALS + 1;
        File::open(path)?.take(limit).read_to_string(&mut text)?;
        if CREDENTIALS < text.len() as u64 {
            return Err(io::Error::other("it is too large"));
        }
        Ok(text)
    };
    read().map_err(|error| format!("cannot read {}: {error}", path.display()))
}
