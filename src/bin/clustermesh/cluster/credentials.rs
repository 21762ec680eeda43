//! Credentials: the server and the user of a kubeconfig, including the files that it names.
//!
//! The libraries' errors quote what they cannot parse, and that may be a private key. So everything
//! is parsed here first, and every mistake has a fixed sentence.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use kube::config::{AuthInfo, Cluster};
use rustls::pki_types::pem::{SectionKind, from_buf};

/// The largest file of credentials that is read, in bytes.
const CREDENTIALS: u64 = 1 << 20;

/// Reads what a cluster keeps in files; a path is known only to who wrote the kubeconfig.
pub(super) fn inline_cluster(mut cluster: Cluster) -> Result<Cluster, String> {
    let authority = field(
        ["certificate-authority-data", "certificate-authority"],
        cluster.certificate_authority_data.as_deref(),
        cluster.certificate_authority.take(),
    )?;
    if let Some(CredentialField { name, pem }) = authority {
        pem.certificates().map_err(|problem| format!("`{name}` {problem}"))?;
        cluster.certificate_authority_data = Some(pem.to_base64());
    }
    Ok(cluster)
}

/// Reads what a user keeps in files.
pub(super) fn inline_user(mut user: AuthInfo) -> Result<AuthInfo, String> {
    if let Some(path) = user.token_file.take() {
        // The file is the newer one, if it can be read.
        match token("the file of `tokenFile`", Path::new(&path)) {
            Ok(token) => user.token = Some(token.into()),
            Err(problem) if user.token.is_none() => return Err(problem),
            Err(_) => {}
        }
    }
    let certificate = field(
        ["client-certificate-data", "client-certificate"],
        user.client_certificate_data.as_deref(),
        user.client_certificate.take(),
    )?;
    let key = field(
        ["client-key-data", "client-key"],
        secret(&user, "client-key-data").as_deref(),
        user.client_key.take(),
    )?;
    match (certificate, key) {
        (None, None) => {}
        (Some(certificate), Some(key)) => {
            let CredentialField { name, pem } = certificate;
            pem.certificates().map_err(|problem| format!("`{name}` {problem}"))?;
            user.client_certificate_data = Some(pem.to_base64());
            let CredentialField { name, pem } = key;
            pem.check_key().map_err(|problem| format!("`{name}` {problem}"))?;
            user.client_key_data = Some(pem.to_base64().into());
        }
        (Some(CredentialField { name, .. }), None) => {
            return Err(format!("`{name}` needs a client key"));
        }
        (None, Some(CredentialField { name, .. })) => {
            return Err(format!("`{name}` needs a client certificate"));
        }
    }
    let says_more = user.impersonate_uid.is_some()
        || user.impersonate_groups.as_ref().is_some_and(|it| !it.is_empty())
        || user.impersonate_user_extra.as_ref().is_some_and(|it| !it.is_empty());
    if says_more && user.impersonate.is_none() {
        return Err("`as-uid`, `as-groups` and `as-user-extra` require `as`".to_owned());
    }
    if let Some(provider) = &user.auth_provider
        && (provider.name != "oidc" || !provider.config.contains_key("id-token"))
    {
        return Err("`auth-provider` was removed in kubectl 1.26; use an `exec` plugin".to_owned());
    }
    Ok(user)
}

/// Returns who may sign the server's certificate; none for whom the system trusts.
pub(super) fn authorities(cluster: &Cluster) -> Result<Option<Vec<Vec<u8>>>, String> {
    let Some(data) = cluster.certificate_authority_data.as_deref() else {
        return Ok(None);
    };
    let certificates = Pem::of_base64(data).and_then(|pem| pem.certificates());
    certificates.map(Some).map_err(|problem| format!("`certificate-authority-data` {problem}"))
}

/// Refuses a token that no header can hold: kube would panic.
pub(super) fn check_token(user: &AuthInfo) -> Result<(), String> {
    let provider = user.auth_provider.as_ref();
    let tokens = [
        ("token", secret(user, "token")),
        ("id-token", provider.and_then(|it| it.config.get("id-token").cloned())),
    ];
    for (field, token) in tokens {
        if token.is_some_and(|token| HeaderValue::from_str(&token).is_err()) {
            return Err(format!("`{field}` contains characters that are not allowed in tokens"));
        }
    }
    Ok(())
}

/// Reads the token in a file, which errors call `what`: its path may be a token by mistake.
pub(super) fn token(what: &str, path: &Path) -> Result<String, String> {
    match text(what, path)?.trim() {
        "" => Err(format!("{what} is empty")),
        token => Ok(token.to_owned()),
    }
}

/// Reads the certificates in a file, which errors call `what`.
pub(super) fn certificates(what: &str, path: &Path) -> Result<Vec<Vec<u8>>, String> {
    let certificates = Pem::of_text(text(what, path)?).certificates();
    certificates.map_err(|problem| format!("{what} {problem}"))
}

/// A field that holds PEM, or names a file that does.
struct CredentialField {
    name: &'static str,
    pem: Pem,
}

/// Reads a field that may be data or a file; data wins.
fn field(
    [data_name, file_name]: [&'static str; 2],
    data: Option<&str>,
    path: Option<String>,
) -> Result<Option<CredentialField>, String> {
    if let Some(data) = data {
        let pem = Pem::of_base64(data).map_err(|problem| format!("`{data_name}` {problem}"))?;
        let name = data_name;
        return Ok(Some(CredentialField { name, pem }));
    }
    let Some(path) = path else { return Ok(None) };
    let text = text(&format!("the file of `{file_name}`"), Path::new(&path))?;
    let (name, pem) = (file_name, Pem::of_text(text));
    Ok(Some(CredentialField { name, pem }))
}

/// Returns a secret field. Only its own way to be written shows it.
fn secret(user: &AuthInfo, field: &str) -> Option<String> {
    serde_json::to_value(user).ok()?.get(field)?.as_str().map(str::to_owned)
}

/// Reads a file of credentials, which errors call `what`. They never quote the path: where a path
/// belongs, people paste the key itself.
fn text(what: &str, path: &Path) -> Result<String, String> {
    let read = || -> io::Result<String> {
        // Before it is opened: opening a pipe would wait for a writer.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut text = String::new();
        let limit = CREDENTIALS + 1;
        File::open(path)?.take(limit).read_to_string(&mut text)?;
        if CREDENTIALS < text.len() as u64 {
            return Err(io::Error::other("it is too large"));
        }
        Ok(text)
    };
    read().map_err(|error| format!("{what} cannot be read: {error}"))
}

/// A text that should be PEM.
pub(super) struct Pem(Vec<u8>);

/// A problem with a PEM text, as a predicate for the name of its field.
pub(super) type PemProblem = &'static str;

impl Pem {
    /// Reads a field such as `client-key-data`. Like kubectl, it ignores line ends.
    fn of_base64(text: &str) -> Result<Self, PemProblem> {
        let text: String = text.split(['\r', '\n']).map(str::trim).collect();
        let decoded = STANDARD.decode(text);
        decoded.map(Self).map_err(|_| "is not valid base64")
    }

    /// Takes the text of a file, or of a login plugin.
    pub(super) fn of_text(text: String) -> Self {
        Self(text.into_bytes())
    }

    /// Returns it as a field such as `client-key-data` holds it.
    pub(super) fn to_base64(&self) -> String {
        STANDARD.encode(&self.0)
    }

    /// Returns its certificates, at least one.
    pub(super) fn certificates(&self) -> Result<Vec<Vec<u8>>, PemProblem> {
        let certificates: Vec<Vec<u8>> = self
            .sections()?
            .into_iter()
            .filter(|(kind, _)| *kind == SectionKind::Certificate)
            .map(|(_, certificate)| certificate)
            .collect();
        if certificates.is_empty() {
            return Err("contains no certificate in PEM");
        }
        Ok(certificates)
    }

    /// Fails unless it has a private key.
    pub(super) fn check_key(&self) -> Result<(), PemProblem> {
        use SectionKind::{EcPrivateKey, PrivateKey, RsaPrivateKey};
        let mut sections = self.sections()?.into_iter();
        if sections.any(|(kind, _)| matches!(kind, PrivateKey | RsaPrivateKey | EcPrivateKey)) {
            return Ok(());
        }
        Err("contains no private key in PEM; an encrypted one cannot be used")
    }

    fn sections(&self) -> Result<Vec<(SectionKind, Vec<u8>)>, PemProblem> {
        let mut rest = self.0.as_slice();
        let mut sections = Vec::new();
        while let Some(section) = from_buf(&mut rest).map_err(|_| "is not valid PEM")? {
            sections.push(section);
        }
        Ok(sections)
    }
}
