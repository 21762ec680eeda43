//! The files of mirrors: for each target a folder with a kustomization.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use by_address::ByAddress;
use serde_json::{Value, json};

use super::{Mirror, Mirrors};
use crate::kilo::peer::{MANAGER, MANAGER_LABEL, MESH_LABEL, SOURCE_LABEL};
use crate::manifest::KUSTOMIZATION;
use crate::mesh::MirroredService;
use crate::name::PeerSetName;
use crate::net;
use crate::port::ServicePort;
use crate::template::{self, TemplateError};
use crate::yaml::{self, HEADER};

/// The end of the name of the folder beside that of the Peers.
pub const FOLDER_SUFFIX: &str = "-services";

/// The label by which controllers know who manages an `EndpointSlice`.
const SLICE_MANAGER_LABEL: &str = "endpointslice.kubernetes.io/managed-by";

/// The label that names the Service of an `EndpointSlice`.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// Returns the files of all targets below a folder.
///
/// # Errors
/// A template that does not fit, which the tests rule out.
pub fn tree(mirrors: &Mirrors, folder: &str) -> Result<BTreeMap<String, Arc<str>>, TemplateError> {
    let mut tree = BTreeMap::new();
    // Most targets get the same Services.
    let mut written: BTreeMap<(ByAddress<&MirroredService>, IpAddr), String> = BTreeMap::new();
    for (target, services) in &mirrors.targets {
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        for mirror in services {
            let set = PeerSetName::new(mirror.mesh, &mirror.service.source);
            let text = texts.entry(format!("{set}.yaml")).or_default();
            let key = (ByAddress(mirror.service), mirror.address);
            let objects = written.entry(key).or_insert_with(|| {
                mirror.objects().map(|it| format!("\n{}", yaml::document(&it))).join("---")
            });
            text.push_str(if text.is_empty() { HEADER } else { "---" });
            text.push_str(objects);
        }
        let files: Vec<&str> = texts.keys().map(String::as_str).collect();
        let kustomization = template::kustomization(&files)?;
        let path = |file: &str| format!("{folder}/{target}/{file}");
        tree.insert(path(KUSTOMIZATION), Arc::from(kustomization));
        tree.extend(texts.into_iter().map(|(file, text)| (path(&file), Arc::from(text))));
    }
    Ok(tree)
}

impl Mirror<'_> {
    /// Returns the Service, which selects no pods, and its only endpoint.
    fn objects(&self) -> [Value; 2] {
        let family = net::family(self.address).to_string();
        let local = &self.service.local;
        let (namespace, name) = (local.namespace.as_str(), local.name());
        let labels = BTreeMap::from([
            (MANAGER_LABEL, MANAGER),
            (MESH_LABEL, self.mesh.as_str()),
            (SOURCE_LABEL, self.service.source.as_str()),
        ]);
        let mut slice_labels = labels.clone();
        slice_labels.extend([(SLICE_MANAGER_LABEL, MANAGER), (SERVICE_LABEL, name)]);
        let ports = &self.service.ports;
        let service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": { "labels": labels, "name": name, "namespace": namespace },
            "spec": {
                "ipFamilies": [family],
                "ipFamilyPolicy": "SingleStack",
                "ports": ports,
                "type": "ClusterIP",
            },
        });
        let slice = json!({
            "addressType": family,
            "apiVersion": "discovery.k8s.io/v1",
            "endpoints": [{ "addresses": [self.address], "conditions": { "ready": true } }],
            "kind": "EndpointSlice",
            "metadata": {
                "labels": slice_labels,
                // A Service of one family has one; those of Kubernetes itself end in five letters and digits.
                "name": format!("{name}-{MANAGER}"),
                "namespace": namespace,
            },
            "ports": ports.iter().map(named).collect::<Vec<_>>(),
        });
        [service, slice]
    }
}

/// Returns a port of an endpoint. Without a name it belongs to no port of a Service.
fn named(port: &ServicePort) -> Value {
    let mut value = json!(port);
    value["name"] = json!(port.name);
    value
}
