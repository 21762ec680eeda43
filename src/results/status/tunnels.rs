//! The tunnels between clusters as the agents report them, and their forms.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::agent::handshakes::{
    HandshakeAnswer, HandshakeWatch, PairReport, ReportDoubt, TunnelGroup,
};
use crate::diagnostic::escaped;
use crate::name::ClusterName;
use crate::text::{self, count};

/// The longest name of a node that is shown, in characters.
const SHOWN: usize = 100;

/// The title of the list.
pub(super) const TITLE: &str = "Tunnels, as Kilo's agents report them (not a proof)";

/// The reports about each pair of linked clusters.
#[derive(JsonSchema)]
#[schemars(with = "Vec<WrittenPair>")]
pub struct TunnelReport {
    pairs: Vec<PairReport>,
}

impl Serialize for TunnelReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.pairs.iter().map(WrittenPair::of))
    }
}

/// Two linked clusters.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "TunnelPair")]
struct WrittenPair<'a> {
    /// Their names.
    #[schemars(with = "[&str; 2]")]
    clusters: &'a [ClusterName; 2],
    /// Their tunnels by answer; empty if neither cluster has a Peer for the other.
    answers: Vec<WrittenAnswer<'a>>,
}

/// The tunnels between two clusters with the same answer.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "TunnelAnswer")]
#[serde(rename_all = "camelCase")]
struct WrittenAnswer<'a> {
    /// The answer.
    answer: AnswerKind,
    /// The clusters whose agents report a handshake.
    #[schemars(with = "Vec<&str>")]
    reported_by: Vec<&'a ClusterName>,
    /// The reason for an unknown answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The number of tunnels.
    tunnels: usize,
    /// The names of the nodes at both ends of the first ten tunnels, in the order of the clusters.
    nodes: &'a [[String; 2]],
}

/// The answer about a tunnel.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
enum AnswerKind {
    /// It has had a handshake since the agents last wrote its configuration.
    Handshake,
    /// It has had none, although one node dials the other and sends keepalives.
    NoneReported,
    /// The agents do not show it.
    Unknown,
}

impl<'a> WrittenPair<'a> {
    fn of(pair: &'a PairReport) -> Self {
        let answers = pair.answers.iter();
        let answers = answers.map(|(answer, group)| WrittenAnswer::of(pair, answer, group));
        Self { clusters: &pair.clusters, answers: answers.collect() }
    }
}

impl<'a> WrittenAnswer<'a> {
    fn of(pair: &'a PairReport, answer: &'a HandshakeAnswer, group: &'a TunnelGroup) -> Self {
        let (kind, reported_by, reason) = match answer {
            HandshakeAnswer::Both => (AnswerKind::Handshake, pair.clusters.iter().collect(), None),
            HandshakeAnswer::One(cluster) => (AnswerKind::Handshake, vec![cluster], None),
            HandshakeAnswer::NoneReported => (AnswerKind::NoneReported, Vec::new(), None),
            HandshakeAnswer::Unknown(doubt) => {
                (AnswerKind::Unknown, Vec::new(), Some(doubt.to_string()))
            }
        };
        Self { answer: kind, reported_by, reason, tunnels: group.count, nodes: &group.first }
    }
}

impl TunnelReport {
    /// Returns the reports about pairs.
    pub fn new(pairs: Vec<PairReport>) -> Self {
        Self { pairs }
    }

    /// Returns whether any tunnel that should have come up has had no handshake.
    pub fn has_missing(&self) -> bool {
        self.answers().any(|it| *it == HandshakeAnswer::NoneReported)
    }

    /// Returns what a later read may answer, if there is anything: with `until_handshakes` also tunnels without a handshake.
    pub fn waits_for(&self, watch: &HandshakeWatch, until_handshakes: bool) -> Option<String> {
        let is_missing =
            |it: &&HandshakeAnswer| until_handshakes && **it == HandshakeAnswer::NoneReported;
        let mut answers = self.answers();
        let seconds = watch.settling;
        Some(match answers.find(|it| it.is_pending() || is_missing(it))? {
            HandshakeAnswer::Unknown(ReportDoubt::Early) | HandshakeAnswer::NoneReported => {
                format!("waiting for handshakes, or for {seconds} s without one")
            }
            HandshakeAnswer::Unknown(ReportDoubt::Unsettled(cluster)) => format!(
                "waiting until the agents of {cluster} check in {seconds} s after the last change of Peers"
            ),
            HandshakeAnswer::Unknown(
                ReportDoubt::Silent(cluster) | ReportDoubt::Clock(cluster),
            ) => {
                format!("waiting until the agents of {cluster} check in")
            }
            _ => return None,
        })
    }

    /// Returns the number of tunnels of each pair with each answer, as JSON names the answers.
    pub(super) fn counts(&self) -> Vec<(&[ClusterName; 2], &'static str, usize)> {
        let mut counts = Vec::new();
        for pair in &self.pairs {
            let of = |is_meant: fn(&HandshakeAnswer) -> bool| {
                let meant = pair.answers.iter().filter(|it| is_meant(it.0));
                meant.map(|it| it.1.count).sum()
            };
            let handshake = |it: &HandshakeAnswer| {
                matches!(it, HandshakeAnswer::Both | HandshakeAnswer::One(_))
            };
            counts.push((&pair.clusters, "handshake", of(handshake)));
            let none = |it: &HandshakeAnswer| *it == HandshakeAnswer::NoneReported;
            counts.push((&pair.clusters, "none_reported", of(none)));
            let unknown = |it: &HandshakeAnswer| matches!(it, HandshakeAnswer::Unknown(_));
            counts.push((&pair.clusters, "unknown", of(unknown)));
        }
        counts
    }

    fn answers(&self) -> impl Iterator<Item = &HandshakeAnswer> {
        self.pairs.iter().flat_map(|it| it.answers.keys())
    }

    /// Returns a line for each answer about each pair.
    pub(super) fn lines(&self) -> Vec<String> {
        let lines = self.pairs.iter().flat_map(|pair| {
            let [one, other] = &pair.clusters;
            let all: usize = pair.answers.values().map(|it| it.count).sum();
            let none = pair.answers.is_empty().then(|| {
                format!("{one}, {other}: unknown: neither has a Peer for a leader of the other")
            });
            let answers = pair.answers.iter();
            let answers = answers.map(move |(answer, group)| {
                format!("{one}, {other}: {}", described(answer, group, all))
            });
            none.into_iter().chain(answers)
        });
        lines.collect()
    }
}

/// Describes the tunnels with one answer, of `all` tunnels between two clusters.
fn described(answer: &HandshakeAnswer, group: &TunnelGroup, all: usize) -> String {
    let number = if group.count == all {
        count(all, "tunnel")
    } else {
        format!("{} of {}", group.count, count(all, "tunnel"))
    };
    let nodes = group
        .first
        .iter()
        .map(|[one, other]| format!("{} – {}", escaped(one, SHOWN), escaped(other, SHOWN)));
    let nodes: Vec<String> = nodes.collect();
    let more = text::and_more(group.count - nodes.len(), "");
    let named = format!("{number}: {}{more}", nodes.join(", "));
    match answer {
        HandshakeAnswer::Both => format!("has had a handshake, reported by both ({number})"),
        HandshakeAnswer::One(cluster) => {
            format!("has had a handshake, reported by {cluster} only ({named})")
        }
        HandshakeAnswer::NoneReported => format!("none reported ({named})"),
        HandshakeAnswer::Unknown(doubt) => format!("unknown ({named}): {doubt}"),
    }
}
