//! Guard: the policy of a cluster for Peers and its binding, if the cluster has them.

use clustermesh::admission::NAME;
use clustermesh::rules::clusters::Fault;
use serde_json::Value;

use super::connection::Connection;
use super::pages::object;
use super::request::{ApiRequest, ApiResponse, SMALL, answer};
use super::right::GET_GUARD;

const KINDS: [&str; 2] = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"];

/// Reads the objects of the guard. A server without this API has none.
pub(super) async fn read(connection: &Connection) -> Result<Vec<Value>, Fault> {
    let mut objects = Vec::new();
    for kind in KINDS {
        let request = ApiRequest {
            path: format!("/apis/admissionregistration.k8s.io/v1/{kind}/{NAME}"),
            right: GET_GUARD,
            limit: SMALL,
        };
        let read = |bytes: &[u8]| object(bytes, &connection.hidden);
        if let ApiResponse::With(object) = answer(connection, &request, read).await? {
            objects.push(object);
        }
    }
    Ok(objects)
}
