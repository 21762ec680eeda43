//! The loose reader: the fields of an object that may be a Peer, of which any may be invalid.

use std::borrow::Cow;

use serde_json::Value;

use super::translation::TranslationFault;
use super::{EXTERNAL_LABEL, MANAGER, MANAGER_LABEL, MESH_LABEL, SOURCE_LABEL, Translation};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::wireguard::PublicKey;

/// The labels and the spec of an object.
#[derive(Clone, Copy, Debug)]
pub struct LoosePeer<'v> {
    /// Its labels, if it has any.
    pub labels: &'v Value,
    /// Its spec, if it has one.
    pub spec: &'v Value,
}

impl<'v> LoosePeer<'v> {
    /// Reads an object.
    pub fn new(object: &'v Value) -> Self {
        Self {
            labels: object.pointer("/metadata/labels").unwrap_or(&Value::Null),
            spec: object.get("spec").unwrap_or(&Value::Null),
        }
    }

    /// Returns the cluster or the external peer that its labels name, which need not be a name.
    pub fn source(self) -> Option<Cow<'v, str>> {
        if let Some(name) = self.external() {
            return Some(format!("external.{name}").into());
        }
        Some(self.labels.get(SOURCE_LABEL)?.as_str()?.into())
    }

    /// Returns the external peer that its label names.
    pub fn external(self) -> Option<&'v str> {
        self.labels.get(EXTERNAL_LABEL)?.as_str()
    }

    /// Returns the cluster or the external peer that its labels name. The label of clusters never names an external peer.
    pub fn cluster(self) -> Option<ClusterName> {
        match self.external() {
            Some(name) => ClusterName::of_external(name).ok(),
            None => self.source()?.parse().ok(),
        }
    }

    /// Returns the mesh that its label names.
    pub fn mesh(self) -> Option<&'v str> {
        self.labels.get(MESH_LABEL)?.as_str()
    }

    /// Returns whether its label names clustermesh as the manager.
    pub fn is_rendered(self) -> bool {
        self.labels.get(MANAGER_LABEL).is_some_and(|it| it == MANAGER)
    }

    /// Returns its key, if Kilo can read it.
    pub fn key(self) -> Option<[u8; 32]> {
        PublicKey::bytes_as_kilo_reads(self.spec.get("publicKey")?.as_str()?)
    }

    /// Returns its valid ranges.
    pub fn ranges(self) -> impl Iterator<Item = Cidr> + 'v {
        let ranges = self.spec.get("allowedIPs").and_then(Value::as_array);
        ranges.into_iter().flatten().filter_map(Value::as_str).filter_map(|it| it.parse().ok())
    }

    /// Returns it as an agent reads it.
    ///
    /// # Errors
    /// The reason why it is not configured in WireGuard.
    pub fn translation(self) -> Result<Translation, TranslationFault> {
        Translation::of_manifest(self.spec)
    }
}
