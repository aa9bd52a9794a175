//! The variables of functions, and of the clients of a cloud.

use std::collections::BTreeMap;

use super::config::Endpoints;
use crate::arn::REGION;
use crate::faults::asks_for_debug;
use crate::stack::{FunctionSpec, GATEWAY_URL_PLACEHOLDER, SQS_URL_PLACEHOLDER};

/// Variables of this process that its functions get too, where set; a function takes an empty one for none.
const PASSED_ON: [&str; 4] = [RUST_LOG, "AWS_LAMBDA_LOG_FORMAT", LOG_LEVEL, LOG_MESSAGES];

/// The variable by which Lambda tells a function the level of its `LoggingConfig`; it beats [`RUST_LOG`].
const LOG_LEVEL: &str = "AWS_LAMBDA_LOG_LEVEL";

const RUST_LOG: &str = "RUST_LOG";

/// By which a function writes lines for each message.
const LOG_MESSAGES: &str = "CLAIMANT_LOG_MESSAGES";

/// What is shown in place of a secret, as CloudFormation does.
pub(crate) const HIDDEN: &str = "****";

/// The variables that point an SDK at the endpoints, whatever the person's profile has. The credentials are not secrets: the endpoints
/// check none.
pub(super) fn variables(endpoints: &Endpoints) -> Vec<(String, String)> {
    let variables = [
        ("AWS_ENDPOINT_URL_DYNAMODB", endpoints.dynamodb.as_str()),
        ("AWS_ENDPOINT_URL_SQS", &endpoints.sqs),
        ("AWS_ENDPOINT_URL_SESV2", &endpoints.ses),
        ("AWS_ENDPOINT_URL_SCHEDULER", &endpoints.scheduler),
        ("AWS_ENDPOINT_URL_LAMBDA", &endpoints.control),
        ("AWS_ENDPOINT_URL_CLOUDFORMATION", &endpoints.control),
        ("AWS_REGION", REGION),
        ("AWS_DEFAULT_REGION", REGION),
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
        // With either, SDKs refuse an endpoint that is named.
        ("AWS_USE_FIPS_ENDPOINT", "false"),
        ("AWS_USE_DUALSTACK_ENDPOINT", "false"),
        // With this, they do as if none was named.
        ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "false"),
    ];
    let s3 = endpoints.s3.as_deref().map(|url| ("AWS_ENDPOINT_URL_S3", url));
    variables.into_iter().chain(s3).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The function's variables: the template's first, then ours, which win. The level is that of its `LoggingConfig`.
pub(super) fn of_function(
    template: &BTreeMap<String, String>,
    log_level: Option<&str>,
    endpoints: &Endpoints,
    own: impl Fn(&str) -> Option<String>,
) -> Vec<(String, String)> {
    let passed_on = |name: &str| Some((name.to_owned(), own(name).filter(|value| !value.trim().is_empty())?));
    let mut environment: BTreeMap<String, String> = PASSED_ON.into_iter().filter_map(passed_on).collect();
    // A level that is asked for here beats the template's.
    let is_asked_for = [RUST_LOG, LOG_LEVEL].iter().any(|name| environment.contains_key(*name));
    if let Some(level) = log_level.filter(|_| !is_asked_for) {
        environment.insert(LOG_LEVEL.to_owned(), level.to_owned());
    }
    for (name, value) in of_template(template, endpoints) {
        // A variable of this process beats the template's.
        environment.entry(name).or_insert(value);
    }
    // A metric record for each batch is long to read, and here nothing takes it up: its line in the log says the same.
    environment.entry("CLAIMANT_METRICS".to_owned()).or_insert_with(|| "off".to_owned());
    environment.extend(variables(endpoints));
    environment.into_iter().collect()
}

/// Adds the variable by which a function writes its lines for each message, unless it is given; returns whether they are for the
/// journal alone. Without it they come at `DEBUG` only, and not in releases; where that level is set, they are for everybody.
pub(super) fn asks_for_lines(environment: &mut Vec<(String, String)>) -> bool {
    let adds = !environment.iter().any(|(name, _)| name == LOG_MESSAGES);
    if adds {
        environment.push((LOG_MESSAGES.to_owned(), "on".to_owned()));
    }
    adds && !asks_for_debug(environment)
}

/// A function's variables as the template has them, with this cloud's addresses.
pub(super) fn of_template(template: &BTreeMap<String, String>, endpoints: &Endpoints) -> BTreeMap<String, String> {
    let with_ours =
        |value: &String| with_gateway(value.replace(SQS_URL_PLACEHOLDER, &endpoints.sqs), &endpoints.gateway);
    template.iter().map(|(name, value)| (name.clone(), with_ours(value))).collect()
}

/// A function's variables as they are shown: as [`of_template`], without secrets.
pub(super) fn shown(spec: &FunctionSpec, endpoints: &Endpoints) -> BTreeMap<String, String> {
    let mut variables = of_template(&spec.environment, endpoints);
    hide(variables.iter_mut().filter(|(name, _)| spec.secrets.contains(*name)).map(|(_, value)| value));
    variables
}

/// Hides secrets. An empty one is shown: whether there is one is no secret.
pub(super) fn hide<'a>(secrets: impl Iterator<Item = &'a mut String>) {
    secrets.filter(|value| !value.is_empty()).for_each(|value| HIDDEN.clone_into(value));
}

/// Those variables on whose value all that have them agree.
pub(super) fn agreed(environments: impl Iterator<Item = BTreeMap<String, String>>) -> Vec<(String, String)> {
    let mut values: BTreeMap<String, Option<String>> = BTreeMap::new();
    for (name, value) in environments.flatten() {
        let agreed = values.entry(name).or_insert_with(|| Some(value.clone()));
        if agreed.as_ref() != Some(&value) {
            *agreed = None;
        }
    }
    values.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The value, its sample gateway replaced by ours.
fn with_gateway(value: String, gateway: &str) -> String {
    match value.strip_prefix(GATEWAY_URL_PLACEHOLDER) {
        Some(path) if path.is_empty() || path.starts_with('/') => format!("{gateway}{path}"),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_gets_real_urls_and_our_endpoints() {
        let [dynamodb, sqs, ses, scheduler, gateway] =
            ["http://d", "http://q", "http://s", "http://t", "http://g"].map(str::to_owned);
        let endpoints = Endpoints {
            dynamodb,
            sqs,
            ses,
            scheduler,
            gateway,
            s3: Some("http://o".to_owned()),
            control: String::new(),
        };
        let template = BTreeMap::from([
            ("QUEUE_URL".to_owned(), format!("{SQS_URL_PLACEHOLDER}/000000000000/orders")),
            ("GATEWAY_URL".to_owned(), format!("{GATEWAY_URL_PLACEHOLDER}/legacy")),
            ("OTHER_URL".to_owned(), format!("{GATEWAY_URL_PLACEHOLDER}.com")),
            ("RUST_LOG".to_owned(), "info".to_owned()),
            ("AWS_REGION".to_owned(), "eu-west-1".to_owned()),
        ]);
        let own = |name: &str| (name == "RUST_LOG").then(|| "debug".to_owned());
        let environment: BTreeMap<_, _> = of_function(&template, Some("WARN"), &endpoints, own).into_iter().collect();
        assert_eq!(environment["QUEUE_URL"], "http://q/000000000000/orders");
        assert_eq!(environment["GATEWAY_URL"], "http://g/legacy");
        assert_eq!(environment["OTHER_URL"], "https://gateway.example.com");
        assert_eq!(environment["RUST_LOG"], "debug");
        assert_eq!(environment["AWS_REGION"], "us-east-1");
        assert_eq!(environment["AWS_ENDPOINT_URL_SESV2"], "http://s");
        assert_eq!(environment["AWS_ENDPOINT_URL_SCHEDULER"], "http://t");
        assert_eq!(environment["AWS_ENDPOINT_URL_S3"], "http://o");
        assert!(!environment.contains_key(LOG_LEVEL), "RUST_LOG is asked for here");
        for value in [None, Some(" ")] {
            let not_asked = of_function(&template, Some("WARN"), &endpoints, |_| value.map(str::to_owned));
            assert!(not_asked.contains(&(LOG_LEVEL.to_owned(), "WARN".to_owned())), "{not_asked:?}");
        }
        assert!(!variables(&Endpoints { s3: None, ..endpoints }).iter().any(|(name, _)| name == "AWS_ENDPOINT_URL_S3"));
        assert!(!environment.contains_key("AWS_LAMBDA_LOG_FORMAT"));
        assert_eq!(environment["CLAIMANT_METRICS"], "off");
    }

    #[test]
    fn lines_for_each_message_are_asked_for_where_nothing_is_said() {
        let cases: [(&[(&str, &str)], bool); 9] = [
            (&[("TABLE", "t")], true),
            (&[("RUST_LOG", "warn")], true),
            (&[("RUST_LOG", "info,aws=Debug")], true),
            (&[("RUST_LOG", "my_app=debug")], true),
            (&[("RUST_LOG", "debug"), ("AWS_LAMBDA_LOG_LEVEL", "INFO")], true),
            (&[("RUST_LOG", "debug")], false),
            (&[("AWS_LAMBDA_LOG_LEVEL", "DEBUG")], false),
            (&[("AWS_LAMBDA_LOG_LEVEL", "TRACE"), (LOG_MESSAGES, "on")], false),
            (&[(LOG_MESSAGES, "off")], false),
        ];
        for (variables, wanted) in cases {
            let mut environment = variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            assert_eq!(asks_for_lines(&mut environment), wanted, "{variables:?}");
            let of_lines: Vec<_> = environment.iter().filter(|(name, _)| name == LOG_MESSAGES).collect();
            let is_off = variables.contains(&(LOG_MESSAGES, "off"));
            assert!(of_lines.len() == 1 && (of_lines[0].1 == "on") != is_off, "{of_lines:?}");
        }
    }

    #[test]
    fn variables_that_functions_do_not_agree_on_are_left_out() {
        let of = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let environments: [BTreeMap<_, _>; 3] = [
            of(&[("TABLE", "Locks"), ("DEAD", "a"), ("OWN", "1")]),
            of(&[("TABLE", "Locks"), ("DEAD", "b")]),
            of(&[("DEAD", "a")]),
        ];
        let pairs = agreed(environments.into_iter());
        assert_eq!(pairs, [("OWN".to_owned(), "1".to_owned()), ("TABLE".to_owned(), "Locks".to_owned())]);
    }
}
