//! Functions of a template, and whether their code can run here.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::events;
use super::section::{Section, physical_name};
use super::spec::{CodeSpec, FunctionSpec};
use super::template::{FUNCTION_TYPES, Template};

/// The properties of a function that are read, where they are not `Globals`' alone.
const PROPERTIES: [&str; 11] = [
    "FunctionName",
    "CodeUri",
    "Code",
    "PackageType",
    "Runtime",
    "Handler",
    "Timeout",
    "MemorySize",
    "Environment",
    "Events",
    "LoggingConfig",
];

/// Properties without anything to see of them here.
const SILENT: [&str; 24] = [
    "Architectures",
    "AssumeRolePolicyDocument",
    "AutoPublishAlias",
    "AutoPublishAliasAllProperties",
    "AutoPublishCodeSha256",
    "CodeSigningConfigArn",
    "DeploymentPreference",
    "Description",
    "EphemeralStorage",
    "KmsKeyArn",
    "PermissionsBoundary",
    "Policies",
    "PropagateTags",
    "ProvisionedConcurrencyConfig",
    "RecursiveLoop",
    "Role",
    "RolePath",
    "RuntimeManagementConfig",
    "SnapStart",
    "SourceKMSKeyArn",
    "Tags",
    "Tracing",
    "VersionDeletionPolicy",
    "VersionDescription",
];

/// Names of variables that Lambda gives, and lets no function have otherwise.
const RESERVED: [&str; 18] = [
    "_HANDLER",
    "_X_AMZN_TRACE_ID",
    "AWS_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_DEFAULT_REGION",
    "AWS_EXECUTION_ENV",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
    "AWS_LAMBDA_FUNCTION_NAME",
    "AWS_LAMBDA_FUNCTION_VERSION",
    "AWS_LAMBDA_INITIALIZATION_TYPE",
    "AWS_LAMBDA_LOG_GROUP_NAME",
    "AWS_LAMBDA_LOG_STREAM_NAME",
    "AWS_LAMBDA_RUNTIME_API",
    "AWS_REGION",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "LAMBDA_RUNTIME_DIR",
    "LAMBDA_TASK_ROOT",
];

const LOG_LEVELS: [&str; 6] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];

const TIMEOUT_DEFAULT_S: u64 = 3;
const MEMORY_DEFAULT_MB: u64 = 128;

const FUNCTION_NAME_LENGTH_MAX: usize = 64;

/// A function's own properties over those of `Globals`, which are for SAM's functions only.
struct Properties<'t> {
    own: Section<'t>,
    globals: Option<Section<'t>>,
}

pub(super) fn functions(template: &Template<'_>) -> Vec<FunctionSpec> {
    let read = template.resources(FUNCTION_TYPES);
    let mut functions: Vec<_> = read.filter_map(|(id, function)| function_spec(template, id, &function)).collect();
    events::add_event_source_mappings(template, &mut functions);
    functions
}

fn function_spec(template: &Template<'_>, id: &str, function: &Section<'_>) -> Option<FunctionSpec> {
    let kind = function.section("Type").text()?;
    let own = function.section("Properties");
    let globals = (kind == FUNCTION_TYPES[0]).then(|| globals(template, function)).flatten();
    let properties = Properties { own, globals };
    if let Err(why) = can_run(function, &properties) {
        let queues = events::queues_read(&properties.own);
        let stays = if queues.is_empty() { String::new() } else { format!("; messages stay in {}", queues.join(", ")) };
        function.not_run(&kind, format!("{why}{stays}"));
        return None;
    }
    for place in properties.globals.iter().chain([&properties.own]) {
        place.note_others(&[&PROPERTIES, &SILENT]);
    }
    let name = physical_name(template, id, function, "FunctionName");
    check_function_name(&properties.own.section("FunctionName"));
    let timeout_s = properties.get("Timeout").integer(1..=900).unwrap_or(TIMEOUT_DEFAULT_S);
    let memory_mb = properties.get("MemorySize").integer(128..=10_240).unwrap_or(MEMORY_DEFAULT_MB);
    let (environment, secrets) = environment(&properties);
    let mappings = properties.own.section("Events").entries().into_iter();
    let mappings = mappings.filter_map(|(event_id, event)| events::sqs_event(id, &event_id, &event)).collect();
    let (binary, code) = code(function, &properties);
    Some(FunctionSpec {
        logical_id: id.to_owned(),
        name: name?,
        binary: binary.unwrap_or_else(|| id.to_owned()),
        code,
        timeout: Duration::from_secs(timeout_s),
        memory_mb: u32::try_from(memory_mb).expect("checked to be 10240 or less"),
        environment,
        secrets,
        log_level: log_level(&properties),
        mappings,
    })
}

/// The properties that are global, without those that the function says to ignore.
fn globals<'t>(template: &'t Template<'_>, function: &Section<'_>) -> Option<Section<'t>> {
    let ignored = function.section("IgnoreGlobals");
    if ignored.plain_text().as_deref() == Some("*") {
        return None;
    }
    let ignored: Vec<_> = ignored.items().iter().filter_map(Section::text).collect();
    Some(template.function_globals(&ignored))
}

impl<'t> Properties<'t> {
    /// The function's own section at a path of names with dots, and the global one if that counts beside it.
    fn both(&self, path: &str) -> (Section<'t>, Option<Section<'t>>) {
        path.split('.').fold((self.own.clone(), self.globals.clone()), |(own, globals), key| {
            let own = own.section(key);
            let globals = globals.map(|globals| globals.section(key)).filter(|globals| own.merges(globals));
            (own, globals)
        })
    }

    /// The function's own section at a path of names with dots; the global one if there is none.
    fn get(&self, path: &str) -> Section<'t> {
        match self.both(path) {
            (own, Some(globals)) if !own.is_written() => globals,
            (own, _) => own,
        }
    }
}

/// Whether the function is a program that speaks the runtime API by itself; if not, why it is not run.
fn can_run(function: &Section<'_>, properties: &Properties<'_>) -> Result<(), String> {
    let text = |key| properties.get(key).text();
    if text("PackageType").as_deref() == Some("Image") {
        return Err("its code is a container image".to_owned());
    }
    if is_built_by_cargo(function) {
        return Ok(());
    }
    match text("Runtime") {
        Some(runtime) if runtime.starts_with("provided") => Ok(()),
        Some(runtime) => Err(format!("its runtime is {runtime}; only programs for provided.al2023 are run")),
        None => Err("it has no Runtime; only programs for provided.al2023 are run".to_owned()),
    }
}

fn is_built_by_cargo(function: &Section<'_>) -> bool {
    function.section("Metadata").section("BuildMethod").text().as_deref() == Some("rust-cargolambda")
}

/// The binary that the template names, and where the code is.
fn code(function: &Section<'_>, properties: &Properties<'_>) -> (Option<String>, CodeSpec) {
    let metadata = function.section("Metadata");
    let build = metadata.section("BuildProperties");
    let binary = build.section("Binary").text();
    let cargo = is_built_by_cargo(function);
    // What `cdk synth` says of the asset that it has put beside the template.
    let asset = metadata.section("aws:asset:path").text();
    let given = ["CodeUri", "Code"].map(|key| properties.get(key));
    // A mapping is code in a bucket, or within the template: nothing to run from.
    let path = given.iter().filter(|code| code.is_given()).find_map(Section::plain_text);
    let is_asset = asset.is_some();
    let directory = asset.or(path).or_else(|| cargo.then(|| ".".to_owned()));
    // As `s3://bucket/key` is.
    let directory = directory.filter(|directory| !directory.contains("://"));
    (binary.clone(), CodeSpec { directory, cargo, binary_is_named: binary.is_some(), is_asset })
}

/// The variables that are global, and over them the function's own: `AWS::NoValue` takes one away, and where it or another function of
/// CloudFormation stands in place of either mapping, the function has its own alone. With the names of those that are secret.
fn environment(properties: &Properties<'_>) -> (BTreeMap<String, String>, BTreeSet<String>) {
    let (own, globals) = properties.both("Environment.Variables");
    let mut all = globals.as_ref().map(variables).unwrap_or_default();
    all.extend(variables(&own));
    let is_secret = |value: &Option<(String, bool)>| value.as_ref().is_some_and(|(_, is_secret)| *is_secret);
    let secrets = all.iter().filter(|(_, value)| is_secret(value)).map(|(name, _)| name.clone()).collect();
    (all.into_iter().filter_map(|(name, value)| Some((name, value?.0))).collect(), secrets)
}

/// The level in `LoggingConfig`; SAM merges that of the function into the global one.
fn log_level(properties: &Properties<'_>) -> Option<String> {
    let level = properties.get("LoggingConfig.ApplicationLogLevel");
    let text = level.text()?;
    if !LOG_LEVELS.contains(&text.as_str()) {
        level.fault(format!("must be one of {}, not `{text}`", LOG_LEVELS.join(", ")));
    }
    let format = properties.get("LoggingConfig.LogFormat");
    let is_text = if format.is_missing() {
        // On managed instances, JSON is the default.
        !properties.get("CapacityProviderConfig").is_written()
    } else {
        format.text().is_some_and(|format| format != "JSON")
    };
    if is_text {
        // The function's own, if it has one: the level may be global, for functions whose format is JSON.
        properties.get("LoggingConfig").fault(
            "needs `LogFormat: JSON` for its ApplicationLogLevel: set that, or `ApplicationLogLevel: !Ref AWS::NoValue`",
        );
    }
    Some(text)
}

/// Each variable that is written, with its value, if it has one, and whether that is secret.
fn variables(all: &Section<'_>) -> BTreeMap<String, Option<(String, bool)>> {
    let variable = |(name, value): (String, Section<'_>)| {
        check_name(&name, &value);
        (name, value.text_or_stand_in())
    };
    all.entries().into_iter().map(variable).collect()
}

/// Lambda refuses a function with another name. Where none is given, CloudFormation makes one.
fn check_function_name(property: &Section<'_>) {
    let is_one = |name: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=FUNCTION_NAME_LENGTH_MAX).contains(&name.len()) && name.bytes().all(plain)
    };
    if property.text().is_some_and(|name| !is_one(&name)) {
        property.fault(format!("must be 1 to {FUNCTION_NAME_LENGTH_MAX} letters, digits, hyphens and underscores"));
    }
}

/// Lambda refuses a function with another variable.
fn check_name(name: &str, value: &Section<'_>) {
    if RESERVED.contains(&name) {
        value.fault("is a name that Lambda reserves: give the variable another one, or remove it");
        return;
    }
    let is_of_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if name.len() < 2 || !is_of_word || !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        value.fault(
            "is no name that Lambda takes: a letter, then letters, digits and underscores, two characters at least",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::Stack;
    use super::super::tests::{TEMPLATE, parameters};

    #[test]
    fn code_in_a_bucket_is_no_directory() {
        for (code, directory) in [("src", Some("src")), ("s3://bucket/code.zip", None)] {
            let yaml = TEMPLATE.replace("      FunctionName:", &format!("      CodeUri: {code}\n      FunctionName:"));
            let stack = Stack::parse(&yaml, &parameters(&[("Sender", "ada")])).expect("sound");
            assert_eq!(stack.functions[0].code.directory.as_deref(), directory);
        }
    }

    #[test]
    fn a_function_has_the_log_level_of_its_own_or_the_global_logging_config() {
        let plain = "{LogFormat: JSON, ApplicationLogLevel: WARN}";
        let function = "{'Fn::FindInMap': [A, B, C, {DefaultValue: {LogFormat: JSON, ApplicationLogLevel: WARN}}]}";
        for (globals, own, expected) in [
            (plain, "", Some("WARN")),
            (plain, "LoggingConfig: {LogGroup: x}", Some("WARN")),
            (plain, "LoggingConfig: {ApplicationLogLevel: DEBUG}", Some("DEBUG")),
            (plain, "LoggingConfig: !Ref AWS::NoValue", None),
            (plain, "LoggingConfig: {LogFormat: Text, ApplicationLogLevel: !Ref AWS::NoValue}", None),
            ("{ApplicationLogLevel: WARN}", "CapacityProviderConfig: {}", Some("WARN")),
            // SAM does not look into a function.
            (function, "", Some("WARN")),
            (function, "LoggingConfig: {LogFormat: Text}", None),
        ] {
            let yaml = TEMPLATE
                .replace("    MemorySize: 256", &format!("    LoggingConfig: {globals}"))
                .replace("      FunctionName:", &format!("      {own}\n      FunctionName:"));
            let stack = Stack::parse(&yaml, &parameters(&[("Sender", "ada")])).expect("sound");
            assert_eq!(stack.functions[0].log_level.as_deref(), expected, "{globals} {own}");
        }
        let both = "LoggingConfig: {LogFormat: JSON, ApplicationLogLevel: WARN, LogGroup: x}";
        let text = TEMPLATE
            .replace("    MemorySize: 256", &format!("    {both}"))
            .replace("      FunctionName:", "      LoggingConfig: {LogFormat: Text}\n      FunctionName:");
        let error = Stack::parse(&text, &parameters(&[("Sender", "ada")])).expect_err("Lambda refuses it").to_string();
        assert!(error.contains(":37: Confirm.Properties.LoggingConfig: needs `LogFormat: JSON`"), "{error}");
    }
}
