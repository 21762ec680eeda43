//! Identities: certificates of servers and users, and the authorities that sign them.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::client::WantsClientCert;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, ServerConfig};

/// Signs certificates.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key.
pub(crate) struct Identity {
    /// In PEM.
    pub(crate) certificate: String,
    /// In PEM.
    pub(crate) key: String,
    chain: Vec<CertificateDer<'static>>,
    private: PrivateKeyDer<'static>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = named(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Its own certificate, in PEM.
    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Returns the identity of a server with these names and addresses.
    pub(crate) fn server(&self, names: &[&str]) -> Identity {
        self.sign(&server(names))
    }

    /// Returns an authority below it that is used as a server with these names and addresses.
    pub(crate) fn as_server(&self, names: &[&str]) -> Identity {
        let mut params = server(names);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        self.sign(&params)
    }

    /// The same, as it was years ago.
    pub(crate) fn expired_server(&self, names: &[&str]) -> Identity {
        let mut params = server(names);
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
        self.sign(&params)
    }

    /// Returns the identity of a user.
    pub(crate) fn user(&self, name: &str) -> Identity {
        let mut params = named(name, &[]);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params)
    }

    pub(super) fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        roots
    }

    fn sign(&self, params: &CertificateParams) -> Identity {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            chain: vec![certificate.der().clone()],
            private: PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        }
    }
}

impl Identity {
    /// Returns the TLS configuration of a server with it: for everyone, and with users of an
    /// authority.
    pub(super) fn server(&self, users: Option<&Authority>) -> ServerConfig {
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = match users {
            None => config.with_no_client_auth(),
            Some(authority) => {
                let roots = Arc::new(authority.roots());
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider())
                    .allow_unauthenticated();
                config.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        config.with_single_cert(self.chain.clone(), self.private.clone_key()).unwrap()
    }

    /// Lets a client show it.
    pub(super) fn client(
        &self,
        config: ConfigBuilder<ClientConfig, WantsClientCert>,
    ) -> ClientConfig {
        config.with_client_auth_cert(self.chain.clone(), self.private.clone_key()).unwrap()
    }
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn server(names: &[&str]) -> CertificateParams {
    let mut params = named("kube-apiserver", names);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params
}

fn named(name: &str, names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
