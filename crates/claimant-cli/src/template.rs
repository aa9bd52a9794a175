//! The templates that a command reads.

use std::path::PathBuf;

use crate::operate::parse;

#[derive(Debug, clap::Args)]
pub(crate) struct TemplateOptions {
    /// The template; without it template.yaml, template.yml or template.json, the first that is there; may be given several times: stacks that
    /// import from each other are read together. Nested stacks that it names by a path are read with it
    #[arg(long = "template", value_name = "FILE", default_value = claimant_template::name_here())]
    pub(crate) templates: Vec<PathBuf>,

    /// A value for a template's parameter, or env:VARIABLE, which holds it; may be given several times
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = parse::name_and_value)]
    pub(crate) parameters: Vec<(String, String)>,
}
