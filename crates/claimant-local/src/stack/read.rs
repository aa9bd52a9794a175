//! A template read as a whole.

use std::collections::BTreeMap;
use std::path::Path;

use super::findings::Findings;
use super::spec::Stack;
use super::template::Template;
use super::{conditions, functions, not_run, parameters, queues, relations, resources, yaml};
use crate::Error;

impl Stack {
    /// Reads the template at `path`; `parameters` override the template's defaults.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is neither YAML nor JSON (the message has the line), or has faults (the message has all,
    /// each with its line).
    pub fn load(path: &Path, parameters: &BTreeMap<String, String>) -> Result<Self, Error> {
        let root = yaml::read(path).map_err(Error::new)?;
        Self::read(&path.display().to_string(), root, parameters)
    }

    /// Reads a template from its text; `parameters` override the template's defaults.
    ///
    /// # Errors
    ///
    /// The text is neither YAML nor JSON (the message has the line), or has faults (the message has all of them, each with
    /// its line).
    pub fn parse(yaml: &str, parameters: &BTreeMap<String, String>) -> Result<Self, Error> {
        let place = "the template";
        Self::read(place, yaml::read_text(place, yaml).map_err(Error::new)?, parameters)
    }

    fn read(place: &str, root: yaml::Node, parameters: &BTreeMap<String, String>) -> Result<Self, Error> {
        let findings = Findings::default();
        let mut template = Template::new(root, parameters, &findings);
        let (root, left) = yaml::written_out(&template.root, |items| template.texts(items));
        left.into_iter().for_each(|one| findings.fault(one.line, one.what));
        template.root = root;
        parameters::check(&template);
        let mut stack = Self {
            queues: queues::queues(&template),
            tables: resources::tables(&template),
            buckets: resources::buckets(&template),
            functions: functions::functions(&template),
            left_out: conditions::left_out(&template),
            not_run: Vec::new(),
        };
        not_run::note_other_resources(&template);
        relations::leave_out_foreign_queues(&mut stack, &template);
        relations::note_absent_tables(&stack, &template);
        relations::check(&stack, &template);
        drop(template);
        findings.into_result(place).map(|not_run| Self { not_run, ..stack })
    }
}
