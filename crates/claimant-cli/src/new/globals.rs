//! What a template's `Globals` say of every function, and a new one's section therefore does not.

use claimant_template::{Kind, Node};

/// What `Globals` can ask of a function's role that a new one's does not allow: its targets are the user's own. SAM gives the rights of the
/// first two to roles that it makes itself.
const UNALLOWED: [(&[&str], &str); 3] = [
    (&["DeadLetterQueue"], "sqs:SendMessage on the queue, or sns:Publish on the topic"),
    (
        &["EventInvokeConfig", "DestinationConfig"],
        "sqs:SendMessage, sns:Publish, lambda:InvokeFunction or events:PutEvents on each destination, and for a bucket s3:ListBucket on it and s3:PutObject on all of its objects",
    ),
    (
        &["FileSystemConfigs"],
        "what a policy of the file system asks for, if it has one: of Amazon EFS elasticfilesystem:ClientMount, and elasticfilesystem:ClientWrite to write",
    ),
];

/// Variables that claimant needs rights for, on what only the user knows, and where it says which.
const OF_VARIABLES: [(&str, &str); 2] =
    [("CLAIMANT_RESUME_ROLE_ARN", "docs/breaker.md"), ("CLAIMANT_SCHEDULE_ROLE_ARN", "docs/outcomes.md")];

/// What SAM gives to the roles that it makes itself alone, and the property of a role that says the same.
const OF_ROLES: [(&str, &str); 3] = [
    ("PermissionsBoundary", "PermissionsBoundary"),
    ("RolePath", "Path"),
    ("AssumeRolePolicyDocument", "AssumeRolePolicyDocument"),
];

/// The lock tables that every function has.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LockTables<'a> {
    /// None: each function names its own.
    Unset,
    /// Resources of the template.
    Named(Vec<&'a str>),
    /// Something else as well, or something that depends on more than the template.
    Unreadable,
}

/// The `Globals` of a template for functions.
pub(super) struct Globals<'a> {
    template: &'a Node,
    of_functions: Option<&'a Node>,
}

impl<'a> Globals<'a> {
    pub(super) fn of(template: &'a Node) -> Self {
        Self { template, of_functions: template.get("Globals").and_then(|globals| globals.get("Function")) }
    }

    fn get(&self, key: &str) -> Option<&'a Node> {
        self.of_functions?.get(key)
    }

    fn variable(&self, name: &str) -> Option<&'a Node> {
        self.get("Environment")?.get("Variables")?.get(name)
    }

    /// Returns whether a function runs by these alone as a consumer's section counts on.
    pub(super) fn run_ours(&self) -> bool {
        let is = |key: &str, value: &str| self.get(key).and_then(Node::as_text) == Some(value);
        let is_json = self.get("LoggingConfig").and_then(|logs| logs.get("LogFormat")?.as_text()) == Some("JSON");
        let runs = is("Handler", "bootstrap") && is("Runtime", "provided.al2023") && is("Timeout", "30");
        runs && is_json && self.get("Architectures").is_some() && self.get("MemorySize").is_some()
    }

    /// Returns whether a function has network interfaces.
    pub(super) fn are_in_vpc(&self) -> bool {
        self.get("VpcConfig").is_some()
    }

    /// Returns whether a function sends traces, or may: that can depend on a parameter.
    pub(super) fn trace(&self) -> bool {
        self.get("Tracing").is_some_and(|mode| !matches!(mode.as_text(), Some("PassThrough" | "Disabled")))
    }

    /// Returns what a function has that its role would have to allow, and which rights those are.
    pub(super) fn unallowed(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let is_there = |path: &[&str]| {
            let found = path.iter().try_fold(self.of_functions, |node, key| Some(node?.get(key)));
            found.flatten().is_some()
        };
        UNALLOWED.into_iter().filter(move |(path, _)| is_there(path)).map(|(path, rights)| (path[0], rights))
    }

    /// Returns what SAM says of roles that it makes itself, and the property that says it of another one.
    pub(super) fn of_roles(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        OF_ROLES.into_iter().filter(|(key, _)| self.get(key).is_some())
    }

    /// Returns the variables that a function needs more rights for, and the document that has them.
    pub(super) fn variables_with_rights(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        OF_VARIABLES.into_iter().filter(|(name, _)| self.variable(name).is_some())
    }

    /// Returns whether a table is encrypted with a key of the user's own in one Region at least, or may be: that can depend on a parameter.
    pub(super) fn is_sealed(&self, table: &str) -> bool {
        self.template
            .get("Resources")
            .and_then(|resources| resources.get(table)?.get("Properties"))
            .is_some_and(has_key)
    }

    /// Returns whether a function moves records.
    pub(super) fn move_records(&self) -> bool {
        self.variable("CLAIMANT_TABLE_BEFORE").is_some()
    }

    /// Returns the tables that have a function's records.
    pub(super) fn lock_tables(&self) -> LockTables<'a> {
        let Some(value) = self.variable("CLAIMANT_TABLE") else { return LockTables::Unset };
        match referred(value) {
            Some(names) if names.iter().all(|name| has(self.template, "Resources", name)) => LockTables::Named(names),
            _ => LockTables::Unreadable,
        }
    }
}

/// Returns whether a section of the template has this name.
pub(super) fn has(template: &Node, section: &str, name: &str) -> bool {
    template.get(section).is_some_and(|section| section.get(name).is_some())
}

/// Returns the section in which the name is taken: CloudFormation takes no parameter that has the name of a resource.
pub(super) fn taken_in(template: &Node, name: &str) -> Option<&'static str> {
    ["Parameters", "Resources"].into_iter().find(|section| has(template, section, name))
}

/// Returns whether something in a table's properties is encrypted with a key that is not AWS's, or may be.
fn has_key(node: &Node) -> bool {
    const OF_AWS: &str = "alias/aws/dynamodb";
    let is_off = node.get("SSEEnabled").and_then(Node::as_text) == Some("false");
    let is_own = |key: &Node| !key.as_text().is_some_and(|key| key.ends_with(OF_AWS));
    match &node.kind {
        Kind::Null | Kind::Text(_) => false,
        Kind::List(items) => items.iter().any(has_key),
        Kind::Map(_) => {
            !is_off
                && (node.get("KMSMasterKeyId").is_some_and(is_own)
                    || node.entries().iter().any(|(_, value)| has_key(value)))
        }
        Kind::Call(_, argument) => has_key(argument),
    }
}

/// Returns the tables that a value names, where it is made of their names or ARNs and commas alone.
fn referred(value: &Node) -> Option<Vec<&str>> {
    let Kind::Call(function, argument) = &value.kind else { return None };
    match (&**function, argument.items()) {
        ("Ref", _) => Some(vec![argument.as_text()?]),
        ("GetAtt", [name, attribute]) if attribute.as_text() == Some("Arn") => Some(vec![name.as_text()?]),
        ("GetAtt", []) => Some(vec![argument.as_text()?.strip_suffix(".Arn")?]),
        ("Sub", []) => {
            let names = argument.as_text()?.split(',').map(|name| name.trim().strip_prefix("${")?.strip_suffix('}'));
            names.map(|name| Some(name?.trim_end_matches(".Arn"))).collect()
        }
        ("Join", [between, parts]) if between.as_text()?.trim() == "," => {
            let names = parts.items().iter().map(referred).collect::<Option<Vec<_>>>()?;
            Some(names.concat()).filter(|names| !names.is_empty())
        }
        _ => None,
    }
}
