//! Whether a function writes a line for each claim, which faults wait for. Pure.

use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};

/// Where the line for a claim comes from.
const TARGET: &str = "claimant_core";

/// The variable that counts where both are set.
const LAMBDA_LEVEL: &str = "AWS_LAMBDA_LOG_LEVEL";

const RUST_LOG: &str = "RUST_LOG";

/// Lambda's level that the parser does not know.
const FATAL: &str = "FATAL";

/// Returns what has a function with these variables write no line for a claim, such as `RUST_LOG=warn`. `claimant::lambda::run`
/// reads them so. At `debug` a function has these lines only if it was built with that level: it is not known here whether it was.
pub(crate) fn hidden_by(environment: &[(String, String)]) -> Option<String> {
    let (name, asked) = level(environment);
    if !shows(name, asked, Level::INFO) {
        Some(format!("{name}={asked}"))
    } else if value(environment, "CLAIMANT_LOG_MESSAGES") != Some("on") {
        Some("CLAIMANT_LOG_MESSAGES is not on".to_owned())
    } else {
        None
    }
}

/// Returns whether these variables ask for the lines that claimant writes at `debug`.
pub(crate) fn asks_for_debug(environment: &[(String, String)]) -> bool {
    let (name, asked) = level(environment);
    shows(name, asked, Level::DEBUG)
}

fn value<'a>(environment: &'a [(String, String)], wanted: &str) -> Option<&'a str> {
    let found = environment.iter().find(|(name, value)| name == wanted && !value.trim().is_empty());
    found.map(|(_, value)| value.trim())
}

/// Returns the variable that counts, and what it asks for.
fn level(environment: &[(String, String)]) -> (&'static str, &str) {
    let given = [LAMBDA_LEVEL, RUST_LOG].into_iter().find_map(|name| Some((name, value(environment, name)?)));
    given.unwrap_or((RUST_LOG, "info"))
}

fn shows(name: &str, asked: &str, level: Level) -> bool {
    let fatal = name == LAMBDA_LEVEL && asked.eq_ignore_ascii_case(FATAL);
    filter(if fatal { "error" } else { asked }).would_enable(TARGET, &level)
}

/// Returns what a function makes of these levels, and levels of targets, as `claimant_lambda`'s `logging` has it. It ignores the rest: a
/// word that is no level, such as `warning`, is no target, and no target is empty. Where it understands nothing, it is as if nothing was
/// asked for.
fn filter(asked: &str) -> Targets {
    let (mut targets, mut understood) = (Targets::new(), false);
    let is_odd = |directive: &str| directive.is_empty() || directive.contains('[') || directive.starts_with('=');
    for directive in asked.split(',').map(str::trim).filter(|directive| !is_odd(directive)) {
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
            ("on", "=warn", "", None),
            ("on", "warn,=info", "", Some("RUST_LOG=warn,=info")),
            // The program may have no such level.
            ("off", "debug", "", Some("CLAIMANT_LOG_MESSAGES is not on")),
            ("off", "warn", "", Some("RUST_LOG=warn")),
        ] {
            let variables = [("CLAIMANT_LOG_MESSAGES", lines), ("RUST_LOG", rust), ("AWS_LAMBDA_LOG_LEVEL", lambda)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(hidden_by(&variables).as_deref(), wanted, "{variables:?}");
        }
    }
}
