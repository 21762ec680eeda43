//! Outages as an object for programs, in a form of its own that is versioned.

use crate::mesh::AddressClass;
use crate::outage::{Harm, LostPaths, OutageObstacle, OutageReport, Survey};
use crate::results::findings::json::each;
use crate::schema::ExampleFile;
use schemars::JsonSchema;
use serde::Serialize;

use super::{LossProof, NextRender, PartsLoss, TriedLosses};

/// The output of `clustermesh outage --output json`. Later versions may add fields.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Outage", example = ExampleFile(include_str!("json/example.json")))]
#[serde(rename_all = "camelCase")]
pub struct WrittenOutage {
    /// Paths that a link declares.
    pub declared: u64,
    /// Declared paths that work in both directions without a loss.
    pub working: u64,
    /// Declared paths that depend on a condition that no snapshot shows; not counted in `working`.
    pub assumed: u64,
    /// The parts of the command line, lost together until the next render.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub together: Option<WrittenPartsLoss>,
    /// Every single node, location and cluster, lost by itself until the next render; only without parts on the command
    /// line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub single: Option<WrittenSurvey>,
}

/// Parts that are lost together.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenPartsLoss {
    /// The parts.
    pub parts: Vec<String>,
    /// The reason why it was not examined, if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_examined: Option<OutageObstacle>,
    /// The declared paths of other nodes that end.
    pub ended: Vec<WrittenEnded>,
    /// The number of declared paths from and to the lost nodes, which end with them.
    pub own: u64,
    /// The effect of the next render, if paths of others end and there is a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_render: Option<WrittenNextRender>,
}

/// Declared paths between two clusters that end.
#[derive(JsonSchema, Serialize)]
pub struct WrittenEnded {
    /// The cluster that sends.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// The number of paths.
    pub paths: u64,
    /// The paths by class of source and destination.
    pub classes: Vec<WrittenEndedClasses>,
    /// The sender and the receiver of one of them: `CLUSTER/NODE`, or `CLUSTER/RANGE`.
    pub example: Option<[String; 2]>,
}

/// Paths between two classes that end.
#[derive(JsonSchema, Serialize)]
pub struct WrittenEndedClasses {
    /// The class of a source.
    pub from: AddressClass,
    /// The class of the destination.
    pub to: AddressClass,
    /// The number of paths.
    pub paths: u64,
}

/// The effect of the next render after an outage.
#[derive(JsonSchema, Serialize)]
pub struct WrittenNextRender {
    /// The number of ended paths that it restores; none if that is not known.
    pub restored: Option<u64>,
    /// The rules of the guards that stop it until a person accepts the losses.
    pub guards: Vec<&'static str>,
}

/// Every single node, location and cluster, lost by itself.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenSurvey {
    /// The number of nodes, locations and clusters.
    pub parts: usize,
    /// The number of them for which a proof was needed.
    pub proved: usize,
    /// Those whose loss breaks declared paths of other nodes, the one that ends most first.
    pub harmful: Vec<WrittenHarm>,
    /// Those of which it is not known.
    pub not_examined: Vec<WrittenUnexamined>,
}

/// A part whose loss ends paths of others.
#[derive(JsonSchema, Serialize)]
pub struct WrittenHarm {
    /// The part: `CLUSTER/NODE`, `CLUSTER:LOCATION` or `CLUSTER`.
    pub part: String,
    /// The number of paths.
    pub paths: u64,
    /// The paths by pair of clusters.
    pub ended: Vec<WrittenEnded>,
}

/// A part of which it is not known what its loss does.
#[derive(JsonSchema, Serialize)]
pub struct WrittenUnexamined {
    /// The part.
    pub part: String,
    /// The reason.
    pub reason: OutageObstacle,
}

impl From<&NextRender> for WrittenNextRender {
    fn from(next: &NextRender) -> Self {
        Self { restored: next.restored.ok(), guards: next.guards.clone() }
    }
}

/// Returns the object.
pub fn written(proof: &LossProof) -> WrittenOutage {
    let (together, single) = match proof.tried {
        TriedLosses::Together(loss) => (Some(proof.written_parts(loss)), None),
        TriedLosses::Single(survey) => (None, Some(proof.written_survey(survey))),
    };
    WrittenOutage {
        declared: proof.total.promised,
        working: proof.total.kept,
        assumed: proof.total.assumed,
        together,
        single,
    }
}

impl LossProof<'_, '_> {
    /// Returns the parts that people named.
    fn written_parts(&self, loss: &PartsLoss) -> WrittenPartsLoss {
        let nothing = OutageReport::default();
        let report = loss.report.as_ref().unwrap_or(&nothing);
        WrittenPartsLoss {
            parts: each(&loss.parts, |it| self.part(it)),
            not_examined: loss.report.as_ref().err().copied(),
            ended: each(&report.ended, |it| self.written_ended(it)),
            own: report.own,
            next_render: loss.next_render.as_ref().map(Into::into),
        }
    }

    /// Returns the single parts.
    fn written_survey(&self, survey: &Survey) -> WrittenSurvey {
        WrittenSurvey {
            parts: survey.parts,
            proved: survey.proved,
            harmful: each(&survey.harmful, |Harm { part, result }| WrittenHarm {
                part: self.part(part),
                paths: result.paths(),
                ended: each(&result.ended, |it| self.written_ended(it)),
            }),
            not_examined: each(&survey.unexamined, |(part, obstacle)| WrittenUnexamined {
                part: self.part(part),
                reason: *obstacle,
            }),
        }
    }

    fn written_ended(&self, ended: &LostPaths) -> WrittenEnded {
        let classes = ended.classes.iter();
        let classes = classes.map(|((from, to), paths)| WrittenEndedClasses {
            from: *from,
            to: *to,
            paths: *paths,
        });
        WrittenEnded {
            from: self.cluster(ended.pair.from),
            to: self.cluster(ended.pair.to),
            paths: ended.count(),
            classes: classes.collect(),
            example: self.example(ended),
        }
    }
}
