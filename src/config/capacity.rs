//! Capacity: the limits of a cluster's load, and the cost of a Peer.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::diagnostic::{Finding, Severity, mistake};
use crate::place::Place;

/// The limits of each quantity, and the costs of a Peer.
#[derive(Clone, Copy, Default, Eq, PartialEq)]
pub struct Capacity {
    /// By quantity.
    steps: CapacityTable,
    /// The cost of a Peer.
    pub costs: Costs,
}

/// Thresholds. A value above a threshold is reported.
#[derive(Clone, Copy, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Steps {
    /// Above the notice threshold: worth knowing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<u64>,
    /// Above the warning threshold: it causes problems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<u64>,
    /// Above the error threshold: it does not work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<u64>,
}

/// Declares the measured costs of a Peer, each with its name in a config and the default.
macro_rules! costs {
    ($($(#[$doc:meta])* $field:ident $key:literal [$what:literal] $usual:literal;)*) => {
        /// The measured costs of a Peer.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub struct Costs {
            $(#[doc = $what] pub $field: u64,)*
        }

        impl Default for Costs {
            fn default() -> Self {
                Self { $($field: $usual,)* }
            }
        }

        impl Costs {
            /// Returns all of them, by their names in a config.
            pub fn all(self) -> [(&'static str, u64); [$($usual,)*].len()] {
                [$(($key, self.$field),)*]
            }
        }

        /// The cost of a Peer.
        #[derive(Debug, Deserialize, JsonSchema)]
        #[schemars(rename = "Costs")]
        #[serde(deny_unknown_fields)]
        struct WrittenCosts {
            $(
                $(#[$doc])*
                #[schemars(range(max = MOST), extend("default" = Costs::default().$field))]
                #[serde(rename = $key)]
                $field: Option<u64>,
            )*
        }

        impl WrittenCosts {
            fn costs(self) -> Costs {
                Costs { $($field: self.$field.unwrap_or($usual),)* }
            }
        }
    };
}

costs! {
    /// Nanoseconds that Kilo needs for a change per squared number of its iptables rules; default:
    /// 2,500.
    nanoseconds_per_squared_rule "nanosecondsPerSquaredRule"
    ["The time that Kilo needs to apply, for each pair of its iptables rules."] 2_500;
    /// Nanoseconds that kustomize needs per squared number of resources; default: 850.
    nanoseconds_per_squared_resource "nanosecondsPerSquaredResource"
    ["The time that kustomize needs to build, for each pair of resources."] 850;
    /// Size in bytes of a Peer in etcd; default: 1,100.
    stored_bytes_per_peer "storedBytesPerPeer" ["The size of a Peer in etcd."] 1_100;
    /// Size in bytes of a Peer in an Argo CD `Application`; default: 394.
    application_bytes_per_peer "applicationBytesPerPeer"
    ["The size of a Peer in an Argo CD `Application`: in its status, and in the result of a sync."] 394;
    /// Size in bytes of a Peer in the inventory of a Flux `Kustomization`; default: 85.
    inventory_bytes_per_peer "inventoryBytesPerPeer"
    ["The size of a Peer in the inventory of a Flux `Kustomization`."] 85;
}

/// Declares the quantities, each with what it is called in a config and its default steps.
macro_rules! quantities {
    ($($(#[$doc:meta])* $quantity:ident $field:ident $key:literal [$notice:expr, $warning:expr, $error:expr];)*) => {
        /// Something of which a cluster can have too much.
        #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
        pub enum Quantity {
            $($(#[$doc])* #[serde(rename = $key)] $quantity,)*
        }

        /// The steps of every quantity.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        struct CapacityTable {
            $($field: Steps,)*
        }

        /// Limits of the load of a cluster, by quantity, and the cost of a Peer.
        #[derive(Debug, Deserialize, JsonSchema)]
        #[schemars(rename = "Capacity")]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        pub(super) struct WrittenCapacity {
            /// The cost of a Peer, if it differs from the measured defaults.
            costs: Option<WrittenCosts>,
            $($(#[$doc])* #[serde(rename = $key)] $field: Option<WrittenThresholds>,)*
        }

        impl Quantity {
            /// All of them, in the order in which they are listed.
            pub const ALL: &[Self] = &[$(Self::$quantity,)*];

            /// Returns what it is called in a config, and by programs.
            pub fn key(self) -> &'static str {
                match self {
                    $(Self::$quantity => $key,)*
                }
            }
        }

        impl Default for CapacityTable {
            fn default() -> Self {
                Self {
                    $($field: Steps { notice: $notice, warning: $warning, error: $error },)*
                }
            }
        }

        impl Capacity {
            /// Returns the steps of a quantity.
            pub fn steps(&self, quantity: Quantity) -> Steps {
                match quantity {
                    $(Quantity::$quantity => self.steps.$field,)*
                }
            }
        }

        impl Capacity {
            /// Returns the same with other steps for a quantity.
            #[must_use]
            pub fn with(mut self, quantity: Quantity, steps: Steps) -> Self {
                match quantity {
                    $(Quantity::$quantity => self.steps.$field = steps,)*
                }
                self
            }
        }

        impl WrittenCapacity {
            /// Reads the value at `place`.
            pub(super) fn capacity(self, place: &Place) -> Result<Capacity, Vec<Finding>> {
                let (mut capacity, mut problems) = (Capacity::default(), Vec::new());
                capacity.costs = self.costs.map(WrittenCosts::costs).unwrap_or_default();
                $(
                    let steps = &mut capacity.steps.$field;
                    match self.$field.map(|it| it.over(*steps, &place.key($key))) {
                        Some(Ok(said)) => *steps = said,
                        Some(Err(problem)) => problems.push(problem),
                        None => {}
                    }
                )*
                if problems.is_empty() {
                    Ok(capacity)
                } else {
                    Err(problems)
                }
            }
        }
    };
}

quantities! {
    /// Peers of a cluster. Each is an object in its API server.
    Peers peers "peers" [Some(1_000), Some(3_000), Some(10_000)];
    /// Allowed IPs of all Peers together.
    Ranges ranges "ranges" [None, None, None];
    /// iptables rules that Kilo keeps on a node.
    Rules rules "rules" [None, None, None];
    /// Seconds that Kilo needs for each change. Kilo must renew its heartbeat every 30 seconds.
    ApplySeconds apply_seconds "applySeconds" [Some(1), Some(5), Some(30)];
    /// Seconds that Kilo needs when it starts and every Peer is new.
    RestartSeconds restart_seconds "restartSeconds" [None, None, None];
    /// Routes of a node.
    Routes routes "routes" [None, None, None];
    /// Size in bytes of a node's WireGuard configuration as text.
    ConfigurationBytes configuration_bytes "configurationBytes" [None, Some(1_000_000), None];
    /// Size in bytes of what a node publishes of the Peers with which it had a handshake. The annotations of a node have at
    /// most 256 KiB together. With more, its API server refuses the heartbeat, and Kilo on the other nodes drops the node.
    AnnotationBytes annotation_bytes "annotationBytes" [None, Some(196_608), Some(257_600)];
    /// WireGuard peers of a node: the other segments of its cluster, and the Peers.
    TunnelsPerNode tunnels_per_node "tunnelsPerNode" [None, None, None];
    /// Tunnel ends of all nodes of a cluster towards other clusters. These are not objects.
    Tunnels tunnels "tunnels" [None, None, None];
    /// Peers whose endpoint is a DNS name. A name that does not resolve stops Kilo from applying
    /// any Peer.
    DnsEndpoints dns_endpoints "dnsEndpoints" [None, Some(0), None];
    /// Size in bytes of the Peers in etcd.
    StoredBytes stored_bytes "storedBytes" [None, None, None];
    /// Seconds that `kustomize build` needs for a cluster's folder.
    KustomizeSeconds kustomize_seconds "kustomizeSeconds" [Some(1), Some(4), Some(13)];
    /// Seconds that Flux needs to reconcile a cluster's Peers: two requests for each, 50 a second. The templates have
    /// a timeout of 3 minutes.
    FluxSeconds flux_seconds "fluxSeconds" [None, Some(180), None];
    /// Size in bytes of an Argo CD `Application` of all Peers of a cluster; the limit of etcd is
    /// 1.5 MiB.
    ApplicationBytes application_bytes "applicationBytes" [None, Some(591_000), Some(1_536_600)];
    /// Size in bytes of the inventory of a Flux `Kustomization` of all Peers of a cluster; the
    /// limit of etcd is 1.5 MiB.
    InventoryBytes inventory_bytes "inventoryBytes" [None, Some(1_048_576), Some(1_572_864)];
    /// Size in bytes of the largest rendered file of a cluster. GitHub recommends at most 1 MB and
    /// refuses 100 MiB.
    FileBytes file_bytes "fileBytes" [Some(262_144), Some(1_048_576), Some(104_857_600)];
    /// Entries in a cluster's folder. GitHub recommends at most 3,000.
    DirectoryEntries directory_entries "directoryEntries" [None, Some(1_000), Some(3_000)];
}

/// Thresholds of a quantity. Missing ones keep their default, adjusted if necessary so that notice
/// ≤ warning ≤ error.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Steps")]
#[serde(deny_unknown_fields)]
struct WrittenThresholds {
    /// Above this value, it is worth knowing.
    #[schemars(range(max = MOST))]
    notice: Option<u64>,
    /// Above this value, it causes problems.
    #[schemars(range(max = MOST))]
    warning: Option<u64>,
    /// Above this value, it does not work.
    #[schemars(range(max = MOST))]
    error: Option<u64>,
}

/// The highest step, and the highest cost.
const MOST: u64 = 1_000_000_000_000;

/// Lists the values that differ from the default.
impl fmt::Debug for Capacity {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let mut fields = formatter.debug_struct("Capacity");
        if self.costs != Costs::default() {
            fields.field("costs", &self.costs);
        }
        for &quantity in Quantity::ALL {
            let steps = self.steps(quantity);
            if steps != Self::default().steps(quantity) {
                fields.field(quantity.key(), &steps);
            }
        }
        fields.finish_non_exhaustive()
    }
}

impl Steps {
    /// Returns how severe a value is; none where it is fine.
    pub fn grade(self, value: f64) -> Option<Severity> {
        self.passed(value).map(|(severity, _)| severity)
    }

    /// Returns the highest step that a value is beyond.
    pub fn passed(self, value: f64) -> Option<(Severity, u64)> {
        let steps = self.all().into_iter().rev();
        let mut said = steps.filter_map(|(severity, step)| Some((severity, step?)));
        said.find(|(_, step)| as_float(*step) < value)
    }

    /// Returns all of them, the lowest first.
    pub fn all(self) -> [(Severity, Option<u64>); 3] {
        [
            (Severity::Notice, self.notice),
            (Severity::Warning, self.warning),
            (Severity::Error, self.error),
        ]
    }
}

/// Returns a number that is small enough to lose nothing.
#[expect(
    clippy::cast_precision_loss,
    reason = "what is counted stays far below 2^53, and else the last digit does not matter"
)]
pub fn as_float(number: u64) -> f64 {
    number as f64
}

impl WrittenThresholds {
    /// Returns these steps, and of the usual ones what stays in order with them.
    fn over(self, usual: Steps, place: &Place) -> Result<Steps, Finding> {
        let said = [("notice", self.notice), ("warning", self.warning), ("error", self.error)];
        let given: Vec<(&str, u64)> =
            said.iter().filter_map(|(name, step)| Some((*name, (*step)?))).collect();
        for pair in given.windows(2) {
            if let [(low, less), (high, more)] = *pair
                && more < less
            {
                let message = format!("`{high}` ({more}) is lower than `{low}` ({less})");
                let diagnostic =
                    Finding::new(&mistake::CONTRADICTING_FIELDS, message).at(place.key(high), "");
                return Err(diagnostic.at(place.key(low), "more than that"));
            }
        }
        let lowest_above = |steps: &[Option<u64>]| steps.iter().flatten().copied().min();
        let highest_below = |steps: &[Option<u64>]| steps.iter().flatten().copied().max();
        let between = |usual: Option<u64>, below: Option<u64>, above: Option<u64>| {
            usual
                .map(|it| below.map_or(it, |below| it.max(below)))
                .map(|it| above.map_or(it, |above| it.min(above)))
        };
        let notice = self.notice.or_else(|| {
            let above = lowest_above(&[self.warning, self.error]);
            between(usual.notice, None, above)
        });
        let warning = self.warning.or_else(|| between(usual.warning, self.notice, self.error));
        let error = self.error.or_else(|| {
            let below = highest_below(&[self.notice, self.warning]);
            between(usual.error, below, None)
        });
        Ok(Steps { notice, warning, error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(notice: Option<u64>, warning: Option<u64>, error: Option<u64>) -> Steps {
        Steps { notice, warning, error }
    }

    fn over(said: Steps) -> Result<Steps, Finding> {
        let written =
            WrittenThresholds { notice: said.notice, warning: said.warning, error: said.error };
        let usual = steps(Some(10), Some(20), Some(30));
        written.over(usual, &Place::document(&"c.yaml".into(), 0))
    }

    #[test]
    fn a_step_itself_is_fine() {
        let steps = steps(Some(10), None, Some(30));
        assert_eq!(steps.grade(10.0), None);
        assert_eq!(steps.grade(10.5), Some(Severity::Notice));
        assert_eq!(steps.passed(31.0), Some((Severity::Error, 30)));
        assert_eq!(Steps::default().grade(f64::MAX), None);
    }

    #[test]
    fn what_is_not_given_stays_in_order() {
        let all = |low, middle, high| steps(Some(low), Some(middle), Some(high));
        assert_eq!(over(steps(None, Some(5), None)), Ok(all(5, 5, 30)));
        assert_eq!(over(steps(None, Some(50), None)), Ok(all(10, 50, 50)));
        assert_eq!(over(steps(Some(25), None, None)), Ok(all(25, 25, 30)));
        assert_eq!(over(steps(None, None, Some(0))), Ok(all(0, 0, 0)));
        assert_eq!(over(Steps::default()), Ok(all(10, 20, 30)));
    }

    #[test]
    fn what_is_given_ascends() {
        let problem = over(steps(Some(3), None, Some(2))).unwrap_err();
        insta::assert_snapshot!(problem.message, @"`error` (2) is lower than `notice` (3)");
        assert!(over(steps(Some(2), Some(2), Some(2))).is_ok());
    }

    #[test]
    fn every_default_ascends() {
        for &quantity in Quantity::ALL {
            let all = Capacity::default().steps(quantity).all();
            let said: Vec<u64> = all.into_iter().filter_map(|(_, step)| step).collect();
            assert!(said.is_sorted(), "{quantity:?}");
        }
    }
}
