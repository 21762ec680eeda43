//! The parameters of an Application's plugin.
//!
//! Argo CD passes them as JSON in one variable. It also sets a `PARAM_*` variable for each, but their
//! names are ambiguous (`a-b` and `a_b`) and lose the shape of lists, so these are not read.

use std::collections::{BTreeMap, BTreeSet};
use std::env;

use anyhow::{Context as _, anyhow, bail};
use clustermesh::diagnostic::{Quoted, escaped};
use clustermesh::document::nearest;
use serde::Deserialize;

use crate::allowed_losses::Allowance;

/// The variable with all parameters.
const VARIABLE: &str = "ARGOCD_APP_PARAMETERS";

/// The cluster that is delivered to.
pub(super) const TARGET: &str = "target";

/// The losses that are allowed.
pub(super) const ALLOW_EMPTY: &str = "allow-empty";

/// The parameters of an Application.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    /// The cluster that it delivers to.
    pub(super) target: Option<String>,
    /// The losses that it allows.
    pub(super) allow_empty: Vec<Allowance>,
}

/// A parameter as Argo CD writes it.
#[derive(Debug, Deserialize)]
struct ParameterFields {
    name: String,
    string: Option<String>,
    array: Option<Vec<String>>,
    map: Option<BTreeMap<String, String>>,
}

impl Parameters {
    /// Returns the parameters of the Application for which the plugin server started this process.
    pub(super) fn of_environment() -> anyhow::Result<Self> {
        let Some(text) = env::var_os(VARIABLE) else {
            return Ok(Self::default());
        };
        let text = text.to_str().with_context(|| format!("{VARIABLE} is not UTF-8"))?;
        Self::read(text)
    }

    fn read(text: &str) -> anyhow::Result<Self> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        // An Application without parameters has `null`.
        let written: Option<Vec<ParameterFields>> =
            serde_json::from_str(text).map_err(|error| {
                let error = escaped(&error.to_string(), 400);
                anyhow!("{VARIABLE} is not a JSON list of parameters: {error}")
            })?;
        let mut parameters = Self::default();
        let mut known = BTreeSet::new();
        for it in written.unwrap_or_default() {
            if !known.insert(it.name.clone()) {
                bail!("the parameter {} is set twice", Quoted(&it.name));
            }
            match it.name.as_str() {
                TARGET => parameters.target = Some(it.target()?),
                ALLOW_EMPTY => parameters.allow_empty = it.allow_empty()?,
                other => return Err(unknown(other)),
            }
        }
        Ok(parameters)
    }
}

impl ParameterFields {
    fn target(self) -> anyhow::Result<String> {
        let target = self.string()?;
        if target.is_empty() {
            bail!("the parameter `{TARGET}` is empty; name a cluster, or remove the parameter");
        }
        Ok(target)
    }

    fn allow_empty(self) -> anyhow::Result<Vec<Allowance>> {
        let Self { string: None, map: None, array: Some(array), .. } = self else {
            bail!("the parameter `{ALLOW_EMPTY}` must be an `array`");
        };
        let allowances = array.iter().map(|text| {
            let allowance: Result<Allowance, String> = text.parse();
            allowance.map_err(|error| {
                let text = Quoted(text);
                anyhow!("the parameter `{ALLOW_EMPTY}` contains {text}: {error}")
            })
        });
        allowances.collect()
    }

    fn string(self) -> anyhow::Result<String> {
        match self {
            Self { string: Some(string), map: None, array: None, .. } => Ok(string),
            Self { name, .. } => bail!("the parameter `{name}` must be a `string`"),
        }
    }
}

fn unknown(name: &str) -> anyhow::Error {
    let names = [TARGET, ALLOW_EMPTY];
    let name = Quoted(name);
    match nearest(name.0, names) {
        Some(meant) => anyhow!("unknown parameter {name}; did you mean `{meant}`?"),
        None => anyhow!("unknown parameter {name}; known parameters: `{TARGET}`, `{ALLOW_EMPTY}`"),
    }
}
