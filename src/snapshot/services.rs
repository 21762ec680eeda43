//! Service snapshots: the Services of one cluster that meshes name, as kept in git beside its nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::num::NonZeroU16;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;

use super::api::few;
use super::difference::value_change;
use super::dump::{DumpError, parse};
use super::file::UniqueObject;
use super::{API_VERSION, SERVICES_KIND as KIND};
use crate::diagnostic::{Quoted, plain_json};
use crate::name::{ClusterName, ServiceName, is_dns_label};
use crate::port::{Protocol, ServicePort};
use crate::schema::{self, ExampleFile, pattern};
use crate::text::{CONFLICT, conflict};

/// The label of everything that clustermesh renders.
const OURS: &str = "kilo-clustermesh.io/source-cluster";

/// The Services of one cluster that meshes name, as `clustermesh snapshot --services` writes them to
/// `snapshots/<cluster>.services.json`.
///
/// The values are copied from the API and not checked here.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[schemars(example = ExampleFile(include_str!("services/example.json")))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ServiceSnapshot {
    /// The version of this format.
    #[schemars(extend("const" = API_VERSION))]
    api_version: String,
    /// The name of the cluster, which is also the beginning of the name of the file.
    #[schemars(regex(pattern = pattern::CLUSTER_NAME), example = &"east")]
    cluster: String,
    /// The kind of this document.
    #[schemars(extend("const" = KIND))]
    kind: String,
    /// The Services, by namespace and name.
    services: Vec<ObservedService>,
}

/// A Service that a mesh names.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ObservedService {
    /// The Service that the cluster has under this name; `null` if it has none.
    found: Option<FoundService>,
    /// Its name.
    name: String,
    /// Its namespace.
    namespace: String,
}

/// A Service of a cluster.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FoundService {
    /// Its cluster IPs; none if it is headless.
    #[schemars(with = "Vec<String>")]
    #[serde(rename = "clusterIPs")]
    pub cluster_ips: Vec<IpAddr>,
    /// Whether it selects pods. Otherwise, another program writes its endpoints.
    pub has_selector: bool,
    /// Whether clustermesh rendered it, according to its labels.
    pub is_mirror: bool,
    /// Its ports.
    pub ports: Vec<ServicePort>,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ServiceType,
    /// Whether it leads only to pods of the node that a packet is on: `internalTrafficPolicy: Local`.
    pub uses_local_endpoints: bool,
}

/// The type of a Service.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum ServiceType {
    /// A cluster IP only.
    #[default]
    ClusterIP,
    /// And a port of every node.
    NodePort,
    /// And an address of a load balancer.
    LoadBalancer,
    /// A DNS name and no address.
    ExternalName,
}

/// The reason why a text is not the service snapshot of a cluster.
#[derive(Debug, Error)]
pub enum ServiceSnapshotError {
    /// Not JSON, or not these fields.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// Services as the API server lists them.
    #[error("not a snapshot, but Services as `kubectl get services` prints them")]
    ServiceList,
    /// A merge that was not finished.
    #[error("{CONFLICT}")]
    Conflict,
    /// Of another kind or version.
    #[error("expected `{KIND}` of `{API_VERSION}`, found {} of {}", Quoted(.kind), Quoted(.version))]
    Header {
        /// Its kind.
        kind: String,
        /// Its version.
        version: String,
    },
    /// Another cluster's file.
    #[error("it contains cluster {}, but the file is named after another", Quoted(.0))]
    Cluster(String),
}

/// The Services that a cluster has, by name.
pub type FoundServices = BTreeMap<ServiceName, FoundService>;

/// The kind of a Service.
const SERVICE: &str = "Service";

/// A Service as the API has it, or a list of them.
#[derive(Deserialize)]
struct ApiService {
    items: Option<Vec<Self>>,
    kind: Option<String>,
    metadata: Option<ApiMetadata>,
    spec: Option<ApiSpec>,
}

#[derive(Deserialize)]
struct ApiMetadata {
    name: Option<String>,
    namespace: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    /// The token for the next page of a list.
    #[serde(rename = "continue")]
    more: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApiSpec {
    #[serde(rename = "clusterIP")]
    cluster_ip: Option<String>,
    #[serde(default, deserialize_with = "few", rename = "clusterIPs")]
    cluster_ips: Vec<String>,
    selector: Option<BTreeMap<String, String>>,
    internal_traffic_policy: Option<String>,
    #[serde(default, deserialize_with = "few")]
    ports: Vec<ApiPort>,
    #[serde(default, rename = "type")]
    kind: ServiceType,
}

#[derive(Deserialize)]
struct ApiPort {
    name: Option<String>,
    port: NonZeroU16,
    protocol: Option<Protocol>,
}

impl ServiceSnapshot {
    /// Returns what a cluster has under these names.
    pub fn new<'n>(
        cluster: &ClusterName,
        names: impl IntoIterator<Item = &'n ServiceName>,
        mut found: FoundServices,
    ) -> Self {
        let names: BTreeSet<&ServiceName> = names.into_iter().collect();
        let services = names.into_iter().map(|name| ObservedService {
            found: found.remove(name),
            name: name.name().to_owned(),
            namespace: name.namespace.to_string(),
        });
        Self {
            api_version: API_VERSION.to_owned(),
            cluster: cluster.to_string(),
            kind: KIND.to_owned(),
            services: services.collect(),
        }
    }

    /// Reads the file of `cluster`.
    ///
    /// # Errors
    /// Anything else.
    pub fn read(cluster: &ClusterName, text: &str) -> Result<Self, ServiceSnapshotError> {
        if conflict(text).is_some() {
            return Err(ServiceSnapshotError::Conflict);
        }
        let UniqueObject(mut file): UniqueObject<Self> =
            serde_json::from_str(text).map_err(|error| match serde_json::from_str(text) {
                Ok(ApiService { kind: Some(kind), .. })
                    if ["List", "ServiceList", SERVICE].contains(&&*kind) =>
                {
                    ServiceSnapshotError::ServiceList
                }
                _ => error.into(),
            })?;
        if file.kind != KIND || file.api_version != API_VERSION {
            return Err(ServiceSnapshotError::Header {
                kind: file.kind,
                version: file.api_version,
            });
        }
        if file.cluster != cluster.as_str() {
            return Err(ServiceSnapshotError::Cluster(file.cluster));
        }
        file.services.sort_by(|a, b| a.key().cmp(&b.key()));
        Ok(file)
    }

    /// Returns what the cluster has under a name; none if it was not looked for.
    pub fn get(&self, name: &ServiceName) -> Option<Option<&FoundService>> {
        let wanted = (name.namespace.as_str(), name.name());
        let found = self.services.binary_search_by(|it| it.key().cmp(&wanted));
        Some(self.services.get(found.ok()?)?.found.as_ref())
    }

    /// Returns the names of the Services that there are, each with its namespace.
    pub fn found(&self) -> Vec<String> {
        let found = self.services.iter().filter(|it| it.found.is_some());
        found.map(|it| format!("{}/{}", it.key().0, it.key().1)).collect()
    }

    /// Returns how many Services were looked for, and how many there are.
    pub fn counts(&self) -> (usize, usize) {
        let found = self.services.iter().filter(|it| it.found.is_some());
        (self.services.len(), found.count())
    }

    /// Returns what is another in `after`, a line each, in order of Services and fields.
    pub fn differences(&self, after: &Self) -> Vec<String> {
        let by_name = |file: &Self| -> BTreeMap<String, Value> {
            let services = file.services.iter();
            let services =
                services.map(|it| (format!("{}/{}", it.namespace, it.name), json!(it.found)));
            services.collect()
        };
        let (before, after) = (by_name(self), by_name(after));
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let lines = names.into_iter().flat_map(|name| {
            let changes = match (before.get(name), after.get(name)) {
                (None, _) => vec!["added to the file".to_owned()],
                (_, None) => vec!["removed from the file".to_owned()],
                (Some(Value::Null), Some(Value::Object(_))) => vec!["added".to_owned()],
                (Some(Value::Object(_)), Some(Value::Null)) => vec!["removed".to_owned()],
                (Some(before), Some(after)) => changed_fields(before, after),
            };
            changes.into_iter().map(move |it| format!("{}: {it}", Quoted(name)))
        });
        lines.collect()
    }

    /// Returns the file's text.
    ///
    /// # Errors
    /// None that these types can cause.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(plain_json(text))
    }
}

impl ObservedService {
    fn key(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }
}

impl ServiceType {
    /// Returns whether such a Service can have a cluster IP.
    pub fn has_address(self) -> bool {
        self != Self::ExternalName
    }
}

/// Returns the JSON Schema of the file.
pub fn schema() -> Schema {
    schema::of_input::<ServiceSnapshot>()
}

/// Returns the fields that differ, with both values.
fn changed_fields(before: &Value, after: &Value) -> Vec<String> {
    let fields = after.as_object().into_iter().flatten();
    let other = fields.filter(|(field, value)| before.get(field) != Some(value));
    let lines = other.map(|(field, value)| {
        let before = before.get(field).map(Value::to_string);
        let change = value_change(before.as_deref(), Some(&value.to_string()));
        format!("{field} {change}")
    });
    lines.collect()
}

/// Reads a Service, or a list of Services, as `kubectl get services -o json` prints it. Everything that has no
/// namespace, no name or other values than Kubernetes gives is left out.
///
/// # Errors
/// Neither JSON nor YAML, not of this form, or not whole.
pub fn found(text: &str) -> Result<FoundServices, DumpError> {
    let object: ApiService = parse(text)?;
    let services = match object.kind.as_deref() {
        Some(SERVICE) => vec![object],
        Some("ServiceList" | "List") => {
            let token = object.metadata.and_then(|it| it.more);
            if token.is_some_and(|token| !token.is_empty()) {
                return Err(DumpError::Incomplete(SERVICE));
            }
            object.items.unwrap_or_default()
        }
        other => return Err(wrong_kind(other)),
    };
    // The API server leaves out the kind in a `ServiceList`.
    let mut kinds = services.iter().filter_map(|it| it.kind.as_deref());
    if let Some(other) = kinds.find(|it| *it != SERVICE) {
        return Err(wrong_kind(Some(other)));
    }
    Ok(services.into_iter().filter_map(ApiService::named).collect())
}

fn wrong_kind(kind: Option<&str>) -> DumpError {
    DumpError::Kind(SERVICE, kind.unwrap_or_default().to_owned())
}

/// Returns the Service of this name that an API server answered; none if the answer is anything else.
pub fn answered(name: &ServiceName, answer: &Value) -> Option<FoundService> {
    let object = ApiService::deserialize(answer).ok()?;
    let is_service = object.kind.as_deref() == Some(SERVICE);
    let (answered, found) = object.named().filter(|_| is_service)?;
    (answered == *name).then_some(found)
}

impl ApiService {
    fn named(self) -> Option<(ServiceName, FoundService)> {
        let metadata = self.metadata?;
        let namespace = metadata.namespace?.parse().ok()?;
        let name = ServiceName::new(namespace, &metadata.name?).ok()?;
        let spec = self.spec?;
        let addresses = spec.cluster_ips.into_iter();
        let addresses = addresses.chain(spec.cluster_ip);
        let addresses: BTreeSet<IpAddr> = addresses.filter_map(|it| it.parse().ok()).collect();
        let ports = spec.ports.into_iter();
        let ports =
            ports.map(ApiPort::known).filter(|it| it.name.is_empty() || is_dns_label(&it.name));
        let labels = metadata.labels.unwrap_or_default();
        let found = FoundService {
            cluster_ips: addresses.into_iter().collect(),
            has_selector: spec.selector.is_some_and(|it| !it.is_empty()),
            is_mirror: labels.contains_key(OURS),
            ports: ports.collect(),
            kind: spec.kind,
            uses_local_endpoints: spec.internal_traffic_policy.as_deref() == Some("Local"),
        };
        Some((name, found))
    }
}

impl ApiPort {
    /// Returns the part of it that a mesh depends on.
    fn known(self) -> ServicePort {
        ServicePort {
            app_protocol: None,
            name: self.name.unwrap_or_default(),
            port: self.port,
            protocol: self.protocol.unwrap_or(Protocol::Tcp),
        }
    }
}

#[cfg(test)]
mod tests;
