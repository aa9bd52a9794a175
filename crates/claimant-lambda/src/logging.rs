//! Logs by Lambda's variables; panics without their data.

use std::panic::PanicHookInfo;

use tracing_subscriber::EnvFilter;

/// Levels that Lambda knows and `tracing` does not.
const FATAL: &str = "FATAL";

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
    EnvFilter::builder().parse_lossy(directives)
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
            (None, Some("debug"), "debug"),
            (Some("WARN"), Some("debug"), "warn"),
            (Some("FATAL"), None, "error"),
        ] {
            assert_eq!(filter(lambda, rust).to_string(), wanted);
        }
    }
}
