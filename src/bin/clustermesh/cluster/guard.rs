//! Guard: the policy of a cluster for Peers and its binding, if the cluster has them.

use clustermesh::admission::NAME;
use clustermesh::rules::clusters::Fault;
use serde_json::Value;

use super::connection::Connection;
use super::failure;
use super::pages::unreadable;
use super::request::{ApiRequest, ApiResponse, SMALL, answer};
use super::right::GET_GUARD;

const KINDS: [&str; 2] = [
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
];

/// Reads the objects of the guard. A server without this API has none.
pub(super) async fn read(connection: &Connection) -> Result<Vec<Value>, Fault> {
    let mut objects = Vec::new();
    for kind in KINDS {
        let request = ApiRequest {
            path: format!("/apis/admissionregistration.k8s.io/v1/{kind}/{NAME}"),
            right: GET_GUARD,
            limit: SMALL,
        };
        let read = |bytes: &[u8]| {
            let object: Value = serde_json::from_slice(bytes).map_err(|error| {
                if error.is_eof() {
                    return failure::of_half();
                }
                unreadable("the response is not JSON")
            })?;
            if connection.hidden.are_in(&object.to_string()) {
                return Err(unreadable("it contains the request's credentials"));
            }
            Ok(object)
        };
        if let ApiResponse::With(object) = answer(connection, &request, read).await? {
            objects.push(object);
        }
    }
    Ok(objects)
}
