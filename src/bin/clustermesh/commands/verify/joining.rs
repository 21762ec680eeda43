//! The verification with the clusters that join.

use std::collections::BTreeSet;

use clustermesh::agent::fabric::{Fabric, SiteId};
use clustermesh::fleet::Fleet;
use clustermesh::joining::{Joiner, Joining};
use clustermesh::mesh::Mesh;
use clustermesh::plan::Plan;
use clustermesh::proof::excused::Excused;
use clustermesh::proof::verify::Asked;
use clustermesh::rules::rendered::PlannedFleet;
use clustermesh::rules::verified::InputGaps;
use clustermesh::rules::{self, Finding, LevelledFindings};
use clustermesh::{manifest, plan};

use super::{Proof, ProofInputs, ProofRequest};
use crate::cluster_peers::{ClusterPeers, KnownContents};
use crate::failure::CommandResult;
use crate::inputs::Inputs;
use crate::proving::look;
use crate::threshold::Threshold;
use clustermesh::results::verify::{JoinVerification, Verified};

/// Clusters that join, and what all clusters would get with them.
#[derive(Default)]
pub(super) struct JoinPlan {
    /// The clusters that could join now.
    pub(super) joiners: Vec<Joiner>,
    /// The clusters that cannot join before they have a snapshot.
    pub(super) waiting: Vec<Joiner>,
    /// The meshes and Peers with the clusters that could join now, if there are any.
    pub(super) joined: Option<JoinedPeers>,
}

/// The Peers of all clusters after some have joined.
pub(super) struct JoinedPeers {
    pub(super) meshes: Vec<Mesh>,
    /// The plan with them.
    plan: Plan,
    /// The Peers that `render` would write.
    pub(super) applied: ClusterPeers,
    /// The ranges that are withheld because of claims of nodes.
    pub(super) excused: Excused,
}

/// The proof with the clusters that join.
pub(super) struct JoinProof<'p> {
    fabric: Fabric<'p>,
    proof: Proof<'p>,
    /// The findings that there are only with them.
    new: LevelledFindings,
    /// Their numbers.
    focus: BTreeSet<SiteId>,
}

impl JoinPlan {
    /// Plans all clusters that could join together.
    pub(super) fn plan(inputs: &Inputs) -> anyhow::Result<Self> {
        let joining = Joining { meshes: &inputs.meshes, snapshots: &inputs.snapshots };
        let (joiners, waiting) = (joining.ready(), joining.waiting());
        let mut planned = Self { joiners, waiting, joined: None };
        if planned.joiners.is_empty() || !inputs.is_whole {
            return Ok(planned);
        }
        let meshes = joining.joined(&planned.joiners);
        // A plan is only there if no snapshot is missing.
        let Ok(fleet) = Fleet::new(&meshes, &inputs.snapshots) else {
            return Ok(planned);
        };
        let plan = plan::plan(&fleet)?;
        let applied = ClusterPeers::planned(
            &inputs.settings,
            &plan,
            &manifest::texts(&plan),
            &KnownContents::default(),
        );
        let excused = rules::excused(&fleet, &plan);
        planned.joined = Some(JoinedPeers { meshes, plan, applied, excused });
        Ok(planned)
    }

    /// Proves the Peers with the clusters that join, given the proof without them.
    pub(super) fn prove<'p>(
        &'p self,
        read: &'p ProofInputs,
        gaps: InputGaps,
        now: &Proof,
    ) -> CommandResult<Option<JoinProof<'p>>> {
        let Some(joined) = &self.joined else {
            return Ok(None);
        };
        let inputs = &read.inputs;
        let fabric = joined.applied.fabric(inputs);
        let fleet = Fleet::new(&joined.meshes, &inputs.snapshots).ok();
        let planned = fleet.as_ref().map(|fleet| PlannedFleet { fleet, plan: &joined.plan });
        let request = ProofRequest {
            asked: Asked { meshes: &joined.meshes, ..inputs.asked() },
            expectations: &read.expectations,
            gaps: InputGaps { planned, ..gaps },
            most: inputs.settings.ceilings.most_steps(),
        };
        let proof = {
            let reach = look(&fabric, inputs.settings.ceilings)?;
            Proof::new(&reach, request, || joined.excused.clone())
        };
        Ok(Some(JoinProof {
            new: inputs.settings.in_force(new_findings(&now.findings, &proof.findings)),
            focus: self.sites(&fabric),
            fabric,
            proof,
        }))
    }

    /// Returns the section about the clusters that join.
    pub(super) fn outlook<'p>(
        &'p self,
        inputs: &'p Inputs,
        joined: Option<&'p JoinProof<'p>>,
        threshold: Threshold,
    ) -> JoinVerification<'p, 'p> {
        let verified = joined.map(|it| Verified {
            basis: String::new(),
            fabric: &it.fabric,
            files: &inputs.files,
            verification: &it.proof.verification,
            unchecked: 0,
            broken: const { &BTreeSet::new() },
            has_wrong_expectations: false,
            outdated: None,
            checks: &it.proof.checks,
            services: &[],
            hostiles: &[],
            is_passed: !threshold.fails(&it.new),
            findings: &it.new,
            focus: Some(&it.focus),
            refused: Vec::new(),
            keeping_nodes: BTreeSet::new(),
            joining: None,
        });
        JoinVerification { joiners: &self.joiners, waiting: &self.waiting, verified }
    }

    /// Returns the clusters that could join now.
    fn sites(&self, fabric: &Fabric) -> BTreeSet<SiteId> {
        self.joiners.iter().filter_map(|it| fabric.site_named(it.cluster.as_str())).collect()
    }
}

/// Returns the findings that there are only with the clusters that join. Their places are in files that
/// are not written yet.
fn new_findings(now: &[Finding], then: &[Finding]) -> Vec<Finding> {
    let is_known = |it: &Finding| {
        let mut same = now.iter().filter(|known| known.rule == it.rule);
        same.any(|known| known.cluster == it.cluster && known.message == it.message)
    };
    let new = then.iter().filter(|it| !is_known(it)).cloned();
    new.map(|finding| Finding { labels: Vec::new(), ..finding }).collect()
}
