//! The gates of a node: everything that it must pass before other clusters have its addresses in their Peers.
//!
//! Nothing is decided here. A gate shows the decision of Kilo's model, of the membership or of the plan, with the value
//! that was decided on.

use schemars::JsonSchema;
use serde::Serialize;

use crate::config::Config;
use crate::diagnostic::bare;
use crate::fleet::Member;
use crate::kilo::id::NodeId;
use crate::report::json::JsonDocument;
use crate::report::page::{PageForm, ReportPage};
use crate::report::table::TextTable;
use crate::results::findings::json::WrittenPlace;
use crate::results::findings::markdown::COMMENT;
use crate::results::forms::ResultForms;
use crate::results::source_texts::SourceTexts;
use crate::rules::rendered::PlannedFleet;
use crate::schema::ExampleFile;
use crate::text::listed;

mod node_gate;
mod peers;

use node_gate::{GateReader, NodeGate};
use peers::NodePeers;

/// The output of `clustermesh explain CLUSTER/NODE --output json`. Later versions may add fields.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "NodeExplanation", example = ExampleFile(include_str!("node_gates/example.json")))]
#[serde(rename_all = "camelCase")]
pub struct NodeExplanation {
    /// The cluster.
    cluster: String,
    /// The node.
    node: String,
    /// Whether every linked cluster gets the pods of the node and nothing makes this uncertain, in each mesh of its cluster.
    routed: bool,
    /// The meshes of its cluster.
    meshes: Vec<GatesInMesh>,
}

/// The gates of a node in one mesh.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct GatesInMesh {
    /// The name of the mesh.
    mesh: String,
    /// Whether every cluster that is linked to the cluster of the node gets its pods, without a doubt; false if none is
    /// linked.
    routed: bool,
    /// The gates, in the order in which they are asked.
    gates: Vec<NodeGate>,
    /// The linked clusters, those with the same result together.
    peers: Vec<NodePeers>,
    /// The reason why packets may not reach the node although clusters have a Peer for its pods, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    doubt: Option<String>,
    /// The remedy in one sentence, if a gate is not passed and there is a single remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

/// The decision of a gate.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
enum GateResult {
    /// The node passes.
    Passed,
    /// The node does not pass.
    Failed,
    /// The gate does not apply to the node.
    NotNeeded,
}

impl GateResult {
    fn of(is_passed: bool) -> Self {
        if is_passed { Self::Passed } else { Self::Failed }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::NotNeeded => "not needed",
        }
    }
}

impl NodeExplanation {
    /// Returns the gates of a node of a cluster that has a snapshot; none if the snapshot does not have the node. The config
    /// has the contexts for commands.
    pub fn new(
        planned: (PlannedFleet, &Config),
        memberships: &[&Member],
        node: &str,
        files: &dyn SourceTexts,
    ) -> Option<Self> {
        let first = memberships.first()?;
        let in_mesh = |member: &&Member| {
            let nodes = member.cluster.nodes.numbered();
            let mut named = nodes.filter(|(_, it)| it.node.name == node);
            let (id, _) = named.next()?;
            Some(GatesInMesh::new(planned, member, id, files))
        };
        let meshes: Vec<GatesInMesh> = memberships.iter().map(in_mesh).collect::<Option<_>>()?;
        Some(Self {
            cluster: first.entry.name.to_string(),
            node: node.to_owned(),
            routed: meshes.iter().all(|it| it.routed),
            meshes,
        })
    }

    /// Returns whether every linked cluster gets the pods of the node, without a doubt.
    pub fn is_routed(&self) -> bool {
        self.routed
    }
}

impl GatesInMesh {
    fn new(
        planned: (PlannedFleet, &Config),
        member: &Member,
        id: NodeId,
        files: &dyn SourceTexts,
    ) -> Self {
        let reader = GateReader::new(member, id, files);
        let gates = reader.gates();
        let (peers, help) = peers::of_node(planned, member, id);
        let are_given = peers.iter().all(|it| it.result == GateResult::Passed);
        let has_peer = peers.iter().any(|it| it.result == GateResult::Passed);
        let doubted = has_peer.then(|| peers::doubt(planned, member, id)).flatten();
        let (doubt, remedy) = doubted.unzip();
        Self {
            mesh: member.mesh.name.to_string(),
            routed: are_given && has_peer && doubt.is_none(),
            gates,
            peers,
            doubt,
            help: remedy.flatten().or(help),
        }
    }

    /// Returns the sentence about all gates.
    fn message(&self, cluster: &str, node: &str) -> String {
        let count = |peers: &mut dyn Iterator<Item = &NodePeers>| -> usize {
            peers.map(|it| it.clusters.len()).sum()
        };
        let of = count(&mut self.peers.iter());
        let given = count(&mut self.peers.iter().filter(|it| it.result == GateResult::Passed));
        let node = format!("{cluster}/{} in mesh {}", bare(node), self.mesh);
        let routed = match &self.doubt {
            Some(doubt) => format!("is not routed reliably ({doubt})"),
            None if given == of => "is routed".to_owned(),
            None => "is partly routed".to_owned(),
        };
        match (given, of) {
            (_, 0) => {
                format!("{node} is not routed: no cluster exchanges Peers with {cluster}.")
            }
            (0, 1) => format!("{node} is not routed: the linked cluster does not get its pods."),
            (0, of) => format!("{node} is not routed: none of {of} linked clusters gets its pods."),
            (1, 1) => format!("{node} {routed}: the linked cluster gets its pods."),
            (given, of) if given == of => {
                format!("{node} {routed}: each of {of} linked clusters gets its pods.")
            }
            (given, of) => {
                format!("{node} {routed}: {given} of {of} linked clusters get its pods.")
            }
        }
    }

    fn table(&self) -> TextTable {
        let mut table = TextTable::new(["RESULT", "OF", "GATE", "VALUE"]).named_by(3);
        for gate in &self.gates {
            let row = [gate.result.word(), gate.of.word(), gate.name];
            let row = row.map(str::to_owned).into_iter().chain([gate.shown()]);
            table.add(row.collect());
        }
        for peers in &self.peers {
            let row = [peers.result.word(), "plan", "Peers"].map(str::to_owned);
            let value = format!("{}: {}", listed(&peers.clusters), peers.shown());
            table.add(row.into_iter().chain([value]).collect());
        }
        table
    }
}

impl ResultForms for NodeExplanation {
    fn page(&self, form: PageForm) -> String {
        let mut page = ReportPage::new(form, "clustermesh explain");
        for (index, mesh) in self.meshes.iter().enumerate() {
            let message = mesh.message(&self.cluster, &self.node);
            if 0 < index {
                page.text("\n");
            }
            match form {
                PageForm::Terminal(width) => {
                    page.text(&format!("{}\n\n", width.wrapped(0, &message)));
                    page.text(&mesh.table().text("", width));
                }
                PageForm::Markdown => {
                    page.sentence(&message);
                    page.text("\n");
                    page.table(&mesh.table(), COMMENT);
                }
            }
            if let Some(help) = &mesh.help {
                page.sentence(&format!("help: {help}"));
            }
        }
        page.finish()
    }

    fn json(&self) -> serde_json::Result<String> {
        JsonDocument::of(self).text()
    }
}
