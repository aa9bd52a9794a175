//! The templates that a command reads, and the values of their parameters.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::operate::parse;

#[derive(Debug, clap::Args)]
pub(crate) struct TemplateOptions {
    /// The template; without it template.yaml, template.yml or template.json, the first that is there; may be given several times: stacks that
    /// import from each other are read together. Nested stacks that it names by a path are read with it
    #[arg(long = "template", value_name = "FILE", default_value = claimant_template::name_here())]
    pub(crate) templates: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) parameters: Parameters,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Parameters {
    /// A value for a template's parameter, or env:VARIABLE, which holds it; may be given several times
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = parse::name_and_value)]
    parameters: Vec<(String, String)>,
}

impl Parameters {
    /// Returns the values by their parameters' names.
    ///
    /// # Errors
    /// When a parameter is given two.
    pub(crate) fn values(&self) -> Result<BTreeMap<String, String>, String> {
        let mut values = BTreeMap::new();
        for (name, value) in &self.parameters {
            // The values themselves may be secrets.
            if values.insert(name.clone(), value.clone()).is_some_and(|before| before != *value) {
                return Err(format!("--parameter {name}=… is given twice, with two values: give it once"));
            }
        }
        Ok(values)
    }
}
