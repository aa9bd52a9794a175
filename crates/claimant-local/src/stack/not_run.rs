//! What of a template the local cloud does not run, and how it is listed: everything by name.

use std::collections::BTreeMap;

use super::spec::{NotRun, Stack};
use super::template::{Template, condition_of, type_of};
use super::yaml;

/// The resource types that run here.
const RUN: [&str; 8] = [
    "AWS::SQS::Queue",
    "AWS::DynamoDB::Table",
    "AWS::DynamoDB::GlobalTable",
    "AWS::Serverless::SimpleTable",
    "AWS::S3::Bucket",
    "AWS::Serverless::Function",
    "AWS::Lambda::Function",
    "AWS::Lambda::EventSourceMapping",
];

impl Stack {
    /// One line for each thing that is not run, with its place in the template, whose path is `place`. Resources of one type that are
    /// not run for one reason share a line, so that many alarms do not hide the rest.
    pub fn not_run_lines(&self, place: &str) -> Vec<String> {
        let mut groups: BTreeMap<(&str, &str), Vec<&NotRun>> = BTreeMap::new();
        let mut order = Vec::new();
        for found in &self.not_run {
            let group = (found.kind.as_str(), found.why.as_str());
            let members = groups.entry(group).or_default();
            if members.is_empty() {
                order.push(group);
            }
            members.push(found);
        }
        let line = |group: &(&str, &str)| {
            let (first, others) = groups[group].split_first()?;
            let others = others.iter().map(|found| format!(", {} (:{})", found.what, found.line));
            let members = format!("{} ({place}:{}){}", first.what, first.line, others.collect::<String>());
            Some(format!("not run here: {} {members}: {}", group.0, group.1))
        };
        order.iter().filter_map(line).collect()
    }
}

/// Notes every resource of a type that has no local counterpart, unless its condition leaves it out anyway.
pub(super) fn note_other_resources(template: &Template<'_>) {
    if let Some((id, kind, node)) = yaml::refused(&template.root) {
        let sam = yaml::SAM;
        let fault = format!("{id}: CloudFormation refuses {kind} in a template without `Transform: {sam}`: add it");
        template.findings.fault(node.line, fault);
    }
    for (id, resource) in template.all_resources() {
        if id.starts_with("Fn::") {
            template.findings.not_run(resource.line, id, "macro", "the resources that it would add are not known here");
            continue;
        }
        if !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            template.findings.fault(resource.line, format!("{id}: is no logical id: give it letters and digits only"));
        }
        let Some(kind) = type_of(resource) else {
            template.findings.fault(resource.line, format!("{id}: has no Type: give it one, such as AWS::SQS::Queue"));
            continue;
        };
        let is_there = condition_of(resource).is_none_or(|condition| template.condition(condition) == Ok(true));
        if is_there && !RUN.contains(&kind) {
            template.findings.not_run(resource.line, id, kind, why(kind));
        }
    }
}

fn why(kind: &str) -> &'static str {
    let of = |services: &[&str]| services.iter().any(|service| kind.starts_with(service));
    if of(&["AWS::IAM::", "AWS::KMS::"]) || kind.ends_with("Policy") || kind.ends_with("Permission") {
        "permissions and keys are not checked"
    } else if of(&["AWS::CloudWatch::", "AWS::Logs::", "AWS::SSM::Parameter", "AWS::CDK::"]) {
        "there is no monitoring or configuration service here"
    } else if of(&["AWS::CloudFormation::Stack", "AWS::Serverless::Application"]) {
        "nested stacks are not read; one that has a consumer's queue, table and function runs with its own \
         `claimant local --template`, and --parameter for what it is given"
    } else if of(&["AWS::Lambda::Alias", "AWS::Lambda::Version"]) {
        "calls to it reach its function"
    } else {
        "this service is not available here: no events come from it, and calls to it fail"
    }
}
