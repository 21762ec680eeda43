//! Added fields: what a cluster's Peer has and the rendered one leaves out.
//!
//! Flux and Argo CD apply on the server side, so they own only the fields that are rendered. Argo CD leaves fields of
//! others as they are, and Flux removes only those of managers whose names begin with `kubectl`.

use std::fmt;

use serde_json::{Value, json};

use crate::kilo::peer::Peer;
use crate::wireguard::{Endpoint, Host};

/// A field of a spec that a rendered Peer may leave out.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum OptionalField {
    /// The name that is dialled. Kilo prefers it to the address.
    Dns,
    /// The address that is dialled.
    Ip,
    /// The endpoint as a whole.
    Endpoint,
    /// The keepalive.
    PersistentKeepalive,
    /// The secret of both sides, which clustermesh never renders.
    PresharedKey,
}

/// The optional fields that are set, also those without an effect.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct OptionalFields([bool; OptionalField::ALL.len()]);

impl OptionalField {
    const ALL: [Self; 5] =
        [Self::Dns, Self::Ip, Self::Endpoint, Self::PersistentKeepalive, Self::PresharedKey];

    /// Returns the path from the spec on.
    fn path(self) -> &'static [&'static str] {
        match self {
            Self::Dns => &["endpoint", "dnsOrIP", "dns"],
            Self::Ip => &["endpoint", "dnsOrIP", "ip"],
            Self::Endpoint => &["endpoint"],
            Self::PersistentKeepalive => &["persistentKeepalive"],
            Self::PresharedKey => &["presharedKey"],
        }
    }

    /// Returns whether a spec has it. An empty text and zero are as good as no value.
    fn is_in(self, spec: &Value) -> bool {
        let mut steps = self.path().iter();
        let value = steps.try_fold(spec, |value, step| value.get(step));
        value.is_some_and(|it| !it.is_null() && it != "" && it != 0)
    }
}

impl OptionalFields {
    /// Returns the fields of a spec as the API server has it.
    pub(super) fn of_manifest(spec: &Value) -> Self {
        Self(OptionalField::ALL.map(|it| it.is_in(spec)))
    }

    /// Returns the fields of a Peer as clustermesh writes it.
    pub(super) fn of_own(peer: &Peer) -> Self {
        let is_name = |it: &Endpoint| matches!(it.host, Host::Dns(_));
        Self(OptionalField::ALL.map(|it| match it {
            OptionalField::Dns => peer.endpoint.as_ref().is_some_and(is_name),
            OptionalField::Ip => !peer.endpoint.as_ref().is_none_or(is_name),
            OptionalField::Endpoint => peer.endpoint.is_some(),
            OptionalField::PersistentKeepalive => peer.keepalive.is_some(),
            OptionalField::PresharedKey => false,
        }))
    }

    /// Returns the fields that the rendered Peer leaves out, without parts of one that it leaves out as a whole.
    pub fn beyond(self, rendered: Self) -> Vec<OptionalField> {
        let fields = OptionalField::ALL.into_iter().zip(self.0).zip(rendered.0);
        let added: Vec<OptionalField> = fields
            .filter(|((_, is_set), is_rendered)| *is_set && !is_rendered)
            .map(|((field, _), _)| field)
            .collect();
        let has_endpoint = added.contains(&OptionalField::Endpoint);
        let is_part = |it: &OptionalField| matches!(it, OptionalField::Dns | OptionalField::Ip);
        added.into_iter().filter(|it| !(has_endpoint && is_part(it))).collect()
    }
}

/// Returns the merge patch (RFC 7396) that removes fields from a Peer. Fields that are gone already do not matter.
pub fn removal(fields: &[OptionalField]) -> Value {
    let mut spec = json!({});
    for field in fields {
        let mut patched = &mut spec;
        for step in field.path() {
            // An index creates what is missing, and turns null into an object.
            patched = &mut patched[*step];
        }
    }
    json!({ "spec": spec })
}

impl fmt::Display for OptionalField {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "spec.{}", self.path().join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(live: Value, rendered: Value) -> Vec<String> {
        let [live, rendered] = [live, rendered].map(|it| OptionalFields::of_manifest(&it));
        let fields = live.beyond(rendered);
        fields.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_fields_that_are_not_rendered_are_added() {
        let rendered =
            json!({"endpoint": {"dnsOrIP": {"ip": "192.0.2.1"}, "port": 7}, "publicKey": "k"});
        let mut live = rendered.clone();
        live["endpoint"]["dnsOrIP"] = json!({"ip": "192.0.2.9", "dns": "198.51.100.7"});
        live["presharedKey"] = json!("secret");
        assert_eq!(
            added(live.clone(), rendered),
            ["spec.endpoint.dnsOrIP.dns", "spec.presharedKey"]
        );
        live["presharedKey"] = json!("");
        live["persistentKeepalive"] = json!(0);
        assert_eq!(added(live.clone(), live.clone()), [""; 0]);
        assert_eq!(added(live, json!({"persistentKeepalive": 25})), ["spec.endpoint"]);
        assert_eq!(added(json!([1]), json!(null)), [""; 0]);
    }

    #[test]
    fn one_patch_removes_all() {
        let patch = removal(&[OptionalField::Dns, OptionalField::Ip, OptionalField::PresharedKey]);
        insta::assert_snapshot!(patch, @r#"{"spec":{"endpoint":{"dnsOrIP":{"dns":null,"ip":null}},"presharedKey":null}}"#);
    }
}
