//! PEM: certificates and keys of a kubeconfig or a login plugin.
//!
//! The libraries' errors quote what they cannot parse, and that may be a private key. So everything
//! is parsed here first, and every mistake has a fixed sentence.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::{SectionKind, from_buf};

/// A text that should be PEM.
pub(super) struct Pem(Vec<u8>);

/// A problem with a PEM text, as a predicate for the name of its field.
pub(super) type PemProblem = &'static str;

impl Pem {
    /// Reads a field such as `client-key-data`. Like kubectl, it ignores line ends.
    pub(super) fn of_base64(text: &str) -> Result<Self, PemProblem> {
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
