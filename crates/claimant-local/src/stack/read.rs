//! A template read as a whole.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use claimant_template::{TEXT_BYTES_MAX, WHAT_TO_GIVE};

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
        let place = path.display().to_string();
        let mut yaml = String::new();
        // One byte more tells a template that is too long; a device that never ends is one, too.
        let read = File::open(path).and_then(|file| file.take(TEXT_BYTES_MAX as u64 + 1).read_to_string(&mut yaml));
        read.map_err(|e| {
            let fix = match e.kind() {
                ErrorKind::InvalidData => "save it as UTF-8",
                ErrorKind::IsADirectory => WHAT_TO_GIVE,
                _ => "check that the path exists and may be read, or name another one",
            };
            Error::new(format!("cannot read the template {place}: {fix}")).caused_by(e)
        })?;
        Self::read(&place, &yaml, parameters)
    }

    /// Reads a template from its text; `parameters` override the template's defaults.
    ///
    /// # Errors
    ///
    /// The text is neither YAML nor JSON (the message has the line), or has faults (the message has all of them, each with
    /// its line).
    pub fn parse(yaml: &str, parameters: &BTreeMap<String, String>) -> Result<Self, Error> {
        Self::read("the template", yaml, parameters)
    }

    fn read(place: &str, yaml: &str, parameters: &BTreeMap<String, String>) -> Result<Self, Error> {
        if yaml.len() > TEXT_BYTES_MAX {
            return Err(Error::new(format!(
                "{place} has more than {TEXT_BYTES_MAX} bytes, which CloudFormation refuses: split it into several templates"
            )));
        }
        let root = yaml::parse(yaml)
            .map_err(|e| Error::new(format!("{place}:{}: this cannot be read: {}", e.line, e.what)))?;
        if !root.get("Resources").is_some_and(yaml::Node::is_map) {
            return Err(Error::new(format!("{place} has no `Resources`: {WHAT_TO_GIVE}")));
        }
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
        relations::check(&stack, &template);
        drop(template);
        findings.into_result(place).map(|not_run| Self { not_run, ..stack })
    }
}
