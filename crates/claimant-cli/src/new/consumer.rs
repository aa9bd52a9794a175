//! What one consumer consists of.

use claimant_template::Node;

use super::globals::{self, Globals, LockTables};
use super::insert;
use super::name::Name;
use super::plan::Plan;
use super::render::Words;

const MEMBER: &str = include_str!("../../templates/consumer/Cargo.toml.in");
const MAIN: &str = include_str!("../../templates/consumer/main.rs.in");
const HANDLER: &str = include_str!("../../templates/consumer/handler.rs.in");
const SCENARIOS: &str = include_str!("../../templates/consumer/scenarios.rs.in");
const TEST: &str = include_str!("../../templates/consumer/function.rs.in");
const EVENT: &str = include_str!("../../templates/consumer/event.json.in");
const RESOURCES: &str = include_str!("../../templates/consumer/resources.yaml.in");
const OUTPUTS: &str = include_str!("../../templates/consumer/outputs.yaml.in");

/// The templates that a consumer's section nests: for each consumer the same.
const NESTED: [(&str, &str); 2] = [
    ("infra/alarms.yaml", include_str!("../../templates/project/alarms.yaml")),
    ("infra/dashboard.yaml", include_str!("../../templates/project/dashboard.yaml")),
];

/// The kinds of resources of a consumer: its name comes before each.
const KINDS: [&str; 8] = ["Queue", "DeadLetterQueue", "Table", "Function", "Logs", "Role", "Alarms", "Dashboard"];

/// The kinds of its outputs.
const OUTPUT_KINDS: [&str; 3] = ["QueueUrl", "DeadLetterQueueUrl", "FunctionName"];

/// What a consumer's section in the template refers to, each by the section of the template that has it.
const SHARED: [(&str, &str); 4] = [
    ("Parameters", "MaximumConcurrency"),
    ("Parameters", "AlarmTopicArn"),
    ("Conditions", "HasDashboards"),
    ("Resources", "ConsumerPolicy"),
];

/// What it refers to besides, unless the template's `Globals` name the lock tables.
const LOCK_TABLE: (&str, &str) = ("Resources", "LockTable");

/// What a member takes from `[workspace.package]`.
const PACKAGE: [&str; 4] = ["version", "edition", "rust-version", "publish"];

/// What a member takes from `[workspace.dependencies]`.
pub(super) const DEPENDENCIES: [&str; 6] = ["claimant", "claimant-test", "serde", "serde_json", "tokio", "tracing"];

/// The SDK that handlers of DynamoDB transactions name themselves.
pub(super) const SDK: &str = "aws-sdk-dynamodb";

/// The compiler that claimant needs, and so each function.
const RUST: &str = env!("CARGO_PKG_RUST_VERSION");

/// What a consumer promises about each piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guarantee {
    /// At least once, with a lease.
    Leased,
    /// Exactly once, in a DynamoDB transaction.
    Transactional,
    /// At most once.
    AtMostOnce,
}

/// A consumer to be written.
#[derive(Debug)]
pub(super) struct Consumer<'a> {
    pub(super) name: &'a Name,
    pub(super) guarantee: Guarantee,
    pub(super) fifo: bool,
    /// What the workspace's template is called.
    pub(super) template: &'static str,
}

impl Consumer<'_> {
    /// Returns the words that its templates are filled in with.
    pub(super) fn words(&self) -> Words {
        let of_guarantee = match self.guarantee {
            Guarantee::Leased => "",
            Guarantee::Transactional => ", in one DynamoDB transaction with its completion",
            Guarantee::AtMostOnce => " at most",
        };
        let of_queue = if self.fifo { ", in the order of its group" } else { "" };
        let mut words = Words::default();
        words.word("name", self.name.as_str());
        words.word("Name", self.name.of_resources());
        words.word("TABLE", format!("{}_TABLE", self.name.of_variables()));
        words.word("of_variant", format!("{of_guarantee}{of_queue}"));
        words.word("fifo_suffix", if self.fifo { ".fifo" } else { "" });
        words.word("dead", if self.fifo { "dead.fifo" } else { "dead" });
        words.word("receives", if self.fifo { "7" } else { "5" });
        words.condition("leased", self.guarantee == Guarantee::Leased);
        words.condition("transactional", self.guarantee == Guarantee::Transactional);
        words.condition("at_most_once", self.guarantee == Guarantee::AtMostOnce);
        words.condition("fifo", self.fifo);
        words
    }

    /// Plans its files and its lines in the files that are there or planned.
    pub(super) fn plan(&self, plan: &mut Plan) {
        let mut words = self.words();
        let manifest = plan.text("Cargo.toml").unwrap_or_default();
        words.condition("licence", insert::has_path(&manifest, "workspace.package.license"));
        words.condition("lints", insert::has_path(&manifest, "workspace.lints"));
        let name = self.name.as_str();
        for (path, template) in [
            (format!("functions/{name}/Cargo.toml"), MEMBER),
            (format!("functions/{name}/src/main.rs"), MAIN),
            (format!("functions/{name}/src/handler.rs"), HANDLER),
            (format!("functions/{name}/src/scenarios.rs"), SCENARIOS),
            (format!("functions/{name}/tests/function.rs"), TEST),
            (format!("tests/events/{name}.json"), EVENT),
        ] {
            plan.add(path, words.fill(template));
        }
        self.check_workspace(plan, &manifest);
        self.plan_resources(plan, words);
        plan_nested(plan);
        if self.guarantee == Guarantee::Transactional
            && let Some(deny) = plan.text("deny.toml")
            && let Some(with) = insert::into_wrappers(&deny, SDK, name)
        {
            plan.change("deny.toml", with);
        }
    }

    /// Notes what the workspace lacks that a member needs.
    fn check_workspace(&self, plan: &mut Plan, manifest: &str) {
        // A TOML string has quotes of either kind.
        if !["\"functions/*\"", "'functions/*'"].iter().any(|member| manifest.contains(member)) {
            plan.fault("Cargo.toml: `members` of the workspace has no \"functions/*\": add it");
        }
        check_build(plan, manifest);
        let sdk = (self.guarantee == Guarantee::Transactional).then_some(SDK);
        let package = PACKAGE.map(|key| ("workspace.package", key));
        let dependencies = DEPENDENCIES.into_iter().chain(sdk).map(|key| ("workspace.dependencies", key));
        for (table, key) in package.into_iter().chain(dependencies) {
            if !insert::has_path(manifest, &format!("{table}.{key}")) {
                let or = if key == DEPENDENCIES[0] { ", or give --project for a project of its own" } else { "" };
                plan.fault(format!("Cargo.toml: [{table}] has no `{key}` for the members: add it{or}"));
            }
        }
        let name = self.name.as_str();
        let taken = |lock: String| lock.lines().any(|line| line == format!("name = \"{name}\""));
        if plan.text("Cargo.lock").is_some_and(taken) {
            plan.fault(format!("there is a package {name} already, in Cargo.lock: choose another name"));
        }
    }

    /// What the template says of all functions is not said again, and has the rights that it takes.
    fn heed_globals(&self, globals: &Globals<'_>, plan: &mut Plan, words: &mut Words) {
        words.condition("runs_by_globals", globals.run_ours());
        words.condition("in_vpc", globals.are_in_vpc());
        words.condition("traced", globals.trace());
        let tables = globals.lock_tables();
        words.condition("table_by_globals", matches!(tables, LockTables::Named(_)));
        let names: &[&str] = match &tables {
            LockTables::Named(names) => names,
            LockTables::Unset | LockTables::Unreadable => &[LOCK_TABLE.1],
        };
        words.word("lock_tables", arns(names));
        let to = format!("to {}Role, or once to ConsumerPolicy,", self.name.of_resources());
        for table in names.iter().filter(|table| globals.is_sealed(table)) {
            plan.note(format!(
                "{table} is encrypted with a key of yours, or may be: before you deploy, add {to} kms:Decrypt on the key. Without it, no message is claimed."
            ));
        }
        if tables == LockTables::Unreadable {
            plan.note(format!(
                "CLAIMANT_TABLE in the template's Globals is not made of its own tables alone: {} has LockTable, a store of its own, and shares no breaker and no limit with functions of another store.",
                self.name.as_str()
            ));
        }
        for (what, rights) in globals.unallowed() {
            plan.note(format!(
                "The template's Globals have {what}, and so has the new function: before you deploy, add {to} {rights}. Without it, the deployment can fail, or the function not start."
            ));
        }
        for (what, property) in globals.of_roles() {
            plan.note(format!(
                "The template's Globals have {what}, which SAM gives only to roles that it makes itself: before you deploy, give {}Role the same, as its {property}.",
                self.name.of_resources()
            ));
        }
        for (variable, document) in globals.variables_with_rights() {
            plan.note(format!(
                "The template's Globals have {variable}, and so has the new function: add {to} what claimant's {document} has for it, or say it at the functions that use it."
            ));
        }
        if globals.move_records() {
            plan.fault(format!(
                "{}: Globals have CLAIMANT_TABLE_BEFORE, and so would a new function, which has no records to move and no permission to: say it at the functions whose records are moved",
                self.template
            ));
        }
    }

    fn plan_resources(&self, plan: &mut Plan, mut words: Words) {
        let file = self.template;
        let Some(yaml) = plan.text(file) else {
            let why = claimant_template::read(&plan.root().join(file)).err();
            plan.fault(why.unwrap_or_else(|| format!("{file} could not be read: try again")));
            return;
        };
        if file.ends_with(".json") {
            plan.fault(format!(
                "{file} is JSON, to which no lines can be added: write it as {}, or give --project",
                claimant_template::NAME
            ));
            return;
        }
        let mut is_free = false;
        match claimant_template::parse(&yaml) {
            Ok(template) => {
                let id = |kind: &&str| self.name.of_resources() + kind;
                let ids = KINDS.iter().map(id).filter(|id| globals::taken_in(&template, id).is_some());
                let outputs = OUTPUT_KINDS.iter().map(id).filter(|id| globals::has(&template, "Outputs", id));
                let taken: Vec<_> = ids.chain(outputs).collect();
                is_free = taken.is_empty();
                for id in taken {
                    plan.fault(format!("{file} has {id} already: choose another name"));
                }
                if claimant_template::refuses_sam(&template) {
                    let sam = claimant_template::SAM;
                    plan.fault(format!(
                        "{file} has no `Transform: {sam}`, without which CloudFormation refuses the new function's type, AWS::Serverless::Function: add it"
                    ));
                }
                let globals = Globals::of(&template);
                let own = (!matches!(globals.lock_tables(), LockTables::Named(_))).then_some(LOCK_TABLE);
                for (section, shared) in SHARED.into_iter().chain(own) {
                    if let Some(fault) = lacks(&template, section, shared) {
                        plan.fault(format!("{file} {fault}"));
                    }
                }
                self.heed_globals(&globals, plan, &mut words);
            }
            Err(unreadable) => {
                plan.fault(format!("{file}:{}: this cannot be read: {}", unreadable.line, unreadable.what));
            }
        }
        let with_resources = insert::into_section(&yaml, "Resources", &words.fill(RESOURCES), true);
        let with_both =
            with_resources.and_then(|yaml| insert::into_section(&yaml, "Outputs", &words.fill(OUTPUTS), false));
        match with_both {
            Ok(yaml) => {
                // Whatever lines are not enough for.
                if is_free && let Err(unreadable) = claimant_template::parse(&yaml) {
                    let name = self.name.as_str();
                    plan.fault(format!(
                        "{file} could not be read with {name}: {}, or choose another name",
                        unreadable.what
                    ));
                }
                plan.change(file, yaml);
            }
            Err(fault) => plan.fault(format!("{file} {fault}: give it a section that lines can be added to")),
        }
    }
}

/// Notes what keeps functions that are built in this workspace from starting, or from being built.
fn check_build(plan: &mut Plan, manifest: &str) {
    if insert::text_of(manifest, "profile.release.panic") != Some("unwind") {
        plan.fault(
            "Cargo.toml: [profile.release] has no `panic = \"unwind\"`, without which a function does not start: add it. Where nothing is written, `cargo lambda build --release` takes \"abort\"",
        );
    }
    if let Some(version) = insert::text_of(manifest, "workspace.package.rust-version")
        && numbers(version) < numbers(RUST)
    {
        plan.fault(format!(
            "Cargo.toml: [workspace.package] has the `rust-version` {version}, and claimant needs {RUST}: raise it"
        ));
    }
}

/// Plans the nested templates, where they are not there. One of these names that takes no consumer is another's.
fn plan_nested(plan: &mut Plan) {
    for (path, text) in NESTED {
        match plan.text(path) {
            None => plan.add(path, text.to_owned()),
            Some(there) if insert::has_key(&there, "Consumer") => {}
            Some(_) => plan.fault(format!(
                "{path} is not claimant's, which a consumer's section in the template nests: it has no parameter Consumer: move it away"
            )),
        }
    }
}

/// Returns what is wrong with a template where a section of it lacks something that consumers share.
fn lacks(template: &Node, section: &str, shared: &str) -> Option<String> {
    let taken = globals::taken_in(template, shared);
    let first = taken.map(|other| format!("give the one under {other} another name, and ")).unwrap_or_default();
    let fault = format!(
        "has no {shared} under {section}, which consumers share: {first}copy it from the template.yaml that `claimant new example --project --directory DIRECTORY` writes"
    );
    (!globals::has(template, section, shared)).then_some(fault)
}

/// Returns the numbers of a version, to be compared.
fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map_while(|number| number.parse().ok()).collect()
}

/// Returns the ARNs of tables, as a role names them.
fn arns(tables: &[&str]) -> String {
    let arns: Vec<_> = tables.iter().map(|table| format!("!GetAtt {table}.Arn")).collect();
    match &arns[..] {
        [arn] => arn.clone(),
        arns => format!("[{}]", arns.join(", ")),
    }
}
