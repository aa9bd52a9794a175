//! Log level and format from Lambda's variables; panics logged without payload data.

use std::panic::PanicHookInfo;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Levels that Lambda knows and `tracing` does not.
const FATAL: &str = "FATAL";

/// Crates that log requests and events, bodies included, below `info`. They stay at `info` where everything is asked for
/// at `debug` or `trace`; `RUST_LOG` can still name one of them.
const VERBOSE_CRATES: [&str; 6] = ["aws_", "h2", "hyper", "lambda_runtime", "rustls", "tower"];

/// Sends logs to standard output: as JSON where `AWS_LAMBDA_LOG_FORMAT` is `JSON`, from the level that
/// `AWS_LAMBDA_LOG_LEVEL`, else `RUST_LOG`, else `info` says. A subscriber that is set already stays. Panics are logged
/// without their data in any case.
pub(crate) fn init() {
    let var = |name: &str| std::env::var(name).ok().filter(|v| !v.trim().is_empty());
    let filter = filter(var("AWS_LAMBDA_LOG_LEVEL").as_deref(), var("RUST_LOG").as_deref());
    let json = var("AWS_LAMBDA_LOG_FORMAT").is_some_and(|f| f.eq_ignore_ascii_case("json"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_target(false);
    // An error means that the function has set its own subscriber, which then stays.
    let _ = if json {
        // With a time: Lambda takes a JSON line without one for `INFO`, and its level filter then drops errors.
        logs.json().flatten_event(true).with_span_list(false).try_init().map_err(drop)
    } else {
        // Without: Lambda stamps each line of text.
        logs.without_time().with_ansi(false).compact().try_init().map_err(drop)
    };
    std::panic::set_hook(Box::new(log_panic));
}

fn filter(lambda_level: Option<&str>, rust_log: Option<&str>) -> EnvFilter {
    let asked = match lambda_level {
        Some(level) if level.eq_ignore_ascii_case(FATAL) => "error",
        Some(level) => level,
        None => rust_log.unwrap_or("info"),
    };
    let everything = asked.split(',').filter_map(|directive| directive.trim().parse::<LevelFilter>().ok()).next_back();
    let verbose = everything.is_some_and(|level| level > LevelFilter::INFO);
    // What is asked for comes last, so that it overrides.
    let quiet = VERBOSE_CRATES.iter().filter(|_| verbose).map(|target| format!("{target}=info,"));
    EnvFilter::builder().parse_lossy(quiet.chain([asked.to_owned()]).collect::<String>())
}

/// A panic's message can quote a payload (`unwrap` on a parse error does), unless it is a literal of the program.
fn log_panic(info: &PanicHookInfo<'_>) {
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    match info.payload().downcast_ref::<&'static str>() {
        Some(literal) => tracing::error!(place, message_text = literal, "panic"),
        None => tracing::error!(place, "panic; its message is left out, since it can hold data"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lambdas_level_wins() {
        for (lambda, rust, wanted) in [
            (None, None, "info"),
            (None, Some("warn"), "warn"),
            (Some("WARN"), Some("debug"), "warn"),
            (Some("FATAL"), None, "error"),
        ] {
            assert_eq!(filter(lambda, rust).to_string(), wanted);
        }
    }

    #[test]
    fn talkative_crates_stay_quiet_unless_named_in_full() {
        let quiet = filter(Some("DEBUG"), None).to_string();
        for target in VERBOSE_CRATES {
            assert!(quiet.contains(&format!("{target}=info")), "{quiet}");
        }
        for named in ["aws_smithy_runtime=trace", "hyper=trace"] {
            let filter = filter(None, Some(&format!("debug,{named}"))).to_string();
            assert!(filter.contains(named), "{filter}");
        }
        assert_eq!(filter(None, Some("warn,orders=debug")).to_string(), "orders=debug,warn");
    }
}
