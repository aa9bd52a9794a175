//! Whether a function tells of its claims, which faults wait for. Pure.

use tracing_subscriber::filter::{LevelFilter, Targets};

/// Where the line for a claim comes from.
const TARGET: &str = "claimant_core";

/// Lambda's level that the parser does not know.
const FATAL: &str = "FATAL";

/// Returns what has a function with these variables write no line for a claim, such as `RUST_LOG=warn`. `claimant::lambda::run`
/// reads them so.
pub(crate) fn hidden_by(environment: &[(String, String)]) -> Option<String> {
    let value = |wanted: &str| {
        let found = environment.iter().find(|(name, value)| name == wanted && !value.trim().is_empty());
        found.map(|(_, value)| value.trim())
    };
    let least = if value("CLAIMANT_LOG_MESSAGES") == Some("on") { LevelFilter::INFO } else { LevelFilter::DEBUG };
    let given = ["AWS_LAMBDA_LOG_LEVEL", "RUST_LOG"].into_iter().find_map(|name| Some((name, value(name)?)));
    let (name, asked) = given.unwrap_or(("RUST_LOG", "info"));
    let fatal = name == "AWS_LAMBDA_LOG_LEVEL" && asked.eq_ignore_ascii_case(FATAL);
    let asked_for = if fatal { "error" } else { asked };
    let targets = filter(asked_for);
    let shows = |level: LevelFilter| level.into_level().is_some_and(|level| targets.would_enable(TARGET, &level));
    if shows(least) {
        None
    } else if shows(LevelFilter::INFO) {
        Some("CLAIMANT_LOG_MESSAGES is not on".to_owned())
    } else {
        Some(format!("{name}={asked}"))
    }
}

/// Returns what a function makes of these levels, and levels of targets, as `claimant_lambda`'s `logging` has it. It ignores the rest: a
/// word that is no level, such as `warning`, is no target. Where it understands nothing, it is as if nothing was asked for.
fn filter(asked: &str) -> Targets {
    let (mut targets, mut understood) = (Targets::new(), false);
    let directives =
        asked.split(',').map(str::trim).filter(|directive| !directive.is_empty() && !directive.contains('['));
    for directive in directives {
        let Ok(one) = directive.parse::<Targets>() else { continue };
        match one.default_level() {
            Some(level) => targets = targets.with_default(level),
            None if directive.contains('=') => targets = targets.with_targets(one),
            None => continue,
        }
        understood = true;
    }
    if understood { targets } else { targets.with_default(LevelFilter::INFO) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_hidden_above_info_and_where_no_lines_are_asked_for() {
        // CLAIMANT_LOG_MESSAGES, RUST_LOG, AWS_LAMBDA_LOG_LEVEL.
        for (lines, rust, lambda, wanted) in [
            ("on", "", "", None),
            ("on", "info,my_app=debug", "", None),
            ("on", "warn, claimant_core=info", "", None),
            ("on", "debug", "INFO", None),
            ("on", "info,[message]=debug", "", None),
            ("on", "warning", "", None),
            ("on", "info,", "", None),
            ("on", "fatal", "", None),
            ("on", "orders=loud,my_app", "", None),
            ("on", "warn,my_app", "", Some("RUST_LOG=warn,my_app")),
            ("on", "warn", "", Some("RUST_LOG=warn")),
            ("on", "my_app=debug", "", Some("RUST_LOG=my_app=debug")),
            ("on", "debug", "FATAL", Some("AWS_LAMBDA_LOG_LEVEL=FATAL")),
            ("off", "", "", Some("CLAIMANT_LOG_MESSAGES is not on")),
            ("off", "debug", "", None),
            ("off", "warn", "", Some("RUST_LOG=warn")),
        ] {
            let variables = [("CLAIMANT_LOG_MESSAGES", lines), ("RUST_LOG", rust), ("AWS_LAMBDA_LOG_LEVEL", lambda)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(hidden_by(&variables).as_deref(), wanted, "{variables:?}");
        }
    }
}
