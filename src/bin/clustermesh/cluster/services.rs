//! Services: those that meshes name, each requested by itself, because no right to list them is needed then.

use std::collections::BTreeSet;

use clustermesh::name::{ClusterName, ServiceName};
use clustermesh::rules::clusters::Fault;
use clustermesh::snapshot::services::{FoundServices, answered};
use http::StatusCode;

use super::connection::Connection;
use super::pages::{object, unreadable};
use super::request::{ApiRequest, ApiResponse, SMALL, answer, refused};
use super::right::Right;

/// Reads those of the Services that the cluster has.
pub(super) async fn read(
    connection: &Connection,
    cluster: &ClusterName,
    names: &BTreeSet<ServiceName>,
) -> Result<FoundServices, Fault> {
    let mut found = FoundServices::new();
    for name in names {
        let (namespace, service) = (&name.namespace, name.name());
        let request = ApiRequest {
            path: format!("/api/v1/namespaces/{namespace}/services/{service}"),
            right: Right::get_service(cluster, name),
            limit: SMALL,
        };
        let read = |bytes: &[u8]| {
            let object = object(bytes, &connection.hidden)?;
            let service = answered(name, &object);
            service.ok_or_else(|| unreadable(&format!("expected the Service `{name}`")))
        };
        match answer(connection, &request, read).await? {
            ApiResponse::With(service) => drop(found.insert(name.clone(), service)),
            ApiResponse::Missing(StatusCode::NOT_FOUND) => {}
            ApiResponse::Missing(status) => return Err(refused(status, "")),
        }
    }
    Ok(found)
}
