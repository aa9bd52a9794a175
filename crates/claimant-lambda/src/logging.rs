//! Logs by Lambda's variables; panics without their data.

use std::panic::PanicHookInfo;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Levels that Lambda knows and `tracing` does not.
const FATAL: &str = "FATAL";

/// Crates that log requests and events, bodies included, below `info`. They stay at `info` whatever level is asked
/// for, unless `RUST_LOG` names one of them in full.
const TALKATIVE: [&str; 6] = ["aws_", "h2", "hyper", "lambda_runtime", "rustls", "tower"];

/// Sends logs to standard output: as JSON where `AWS_LAMBDA_LOG_FORMAT` is `JSON`, from the level that
/// `AWS_LAMBDA_LOG_LEVEL`, else `RUST_LOG`, else `info` says. Does nothing where a subscriber is set already.
pub(crate) fn init() {
    let var = |name: &str| std::env::var(name).ok().filter(|v| !v.trim().is_empty());
    let filter = filter(var("AWS_LAMBDA_LOG_LEVEL").as_deref(), var("RUST_LOG").as_deref());
    let json = var("AWS_LAMBDA_LOG_FORMAT").is_some_and(|f| f.eq_ignore_ascii_case("json"));
    // The runtime stamps each line with its time.
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_target(false).without_time();
    // An error means that the function has set its own subscriber, which then stays.
    let _ = if json {
        logs.json().flatten_event(true).with_span_list(false).try_init().map_err(drop)
    } else {
        logs.with_ansi(false).compact().try_init().map_err(drop)
    };
    std::panic::set_hook(Box::new(log_panic));
}

fn filter(lambda_level: Option<&str>, rust_log: Option<&str>) -> EnvFilter {
    let directives = match lambda_level {
        Some(level) if level.eq_ignore_ascii_case(FATAL) => "error",
        Some(level) => level,
        None => rust_log.unwrap_or("info"),
    };
    let filter = EnvFilter::builder().parse_lossy(directives);
    if filter.max_level_hint().is_some_and(|level| level <= LevelFilter::INFO) {
        return filter;
    }
    TALKATIVE.into_iter().fold(filter, |filter, target| {
        // A target and a level always make a directive.
        format!("{target}=info").parse().map_or(filter.clone(), |quiet| filter.add_directive(quiet))
    })
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
        for target in TALKATIVE {
            assert!(quiet.contains(&format!("{target}=info")), "{quiet}");
        }
        let named = filter(None, Some("info,aws_smithy_runtime=trace")).to_string();
        assert!(named.contains("aws_smithy_runtime=trace"), "{named}");
    }
}
