//! Log level and format from Lambda's variables; panics logged without payload data.

use std::panic::PanicHookInfo;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Levels that Lambda knows and `tracing` does not.
const FATAL: &str = "FATAL";

/// Crates that log requests and events, bodies included, below `info`. They stay at `info` where everything is asked for
/// at `debug` or `trace`; `RUST_LOG` can still name one of them. Releases with claimant's feature `release_max_level_info` have no such logs.
const VERBOSE_CRATES: [&str; 6] = ["aws_", "h2", "hyper", "lambda_runtime", "rustls", "tower"];

/// Sets up logs and the panic hook, as [`run`](crate::run) and [`Service::new`](crate::Service::new) do by themselves: for programs
/// that call neither, on Lambda or elsewhere, such as the worker of an inbox. Without it, nothing of claimant is logged in them, and Rust
/// prints panics in full.
///
/// Logs go to standard output: as JSON where `AWS_LAMBDA_LOG_FORMAT` is `JSON`, from the level that `AWS_LAMBDA_LOG_LEVEL`, else
/// `RUST_LOG`, else `info` says. A `tracing` subscriber that is set already stays. Panics are logged without their data in any case: a
/// panic's message can quote a payload.
pub fn init() {
    let var = |name: &str| std::env::var(name).ok().filter(|v| !v.trim().is_empty());
    let Filter { targets, ignored } = filter(var("AWS_LAMBDA_LOG_LEVEL").as_deref(), var("RUST_LOG").as_deref());
    let json = var("AWS_LAMBDA_LOG_FORMAT").is_some_and(|f| f.eq_ignore_ascii_case("json"));
    let logs = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_target(false);
    let set = if json {
        // With a time: Lambda takes a JSON line without one for `INFO`, and its level filter then drops errors.
        logs.json().flatten_event(true).with_span_list(false).finish().with(targets).try_init()
    } else {
        // Without: Lambda stamps each line of text.
        logs.without_time().with_ansi(false).compact().finish().with(targets).try_init()
    };
    // An error means that the function has set its own subscriber, which then stays.
    if set.is_ok() && !ignored.is_empty() {
        tracing::warn!(?ignored, "log filters other than level and target=level are ignored");
    }
    std::panic::set_hook(Box::new(log_panic));
}

/// What is logged.
struct Filter {
    targets: Targets,
    /// Directives that say nothing here.
    ignored: Vec<String>,
}

/// Returns what these variables ask for: levels, and levels of targets. Not `EnvFilter`, which takes more and brings a compiler of regular
/// expressions into each function. The local cloud's `faults::claims` goes by the same.
fn filter(lambda_level: Option<&str>, rust_log: Option<&str>) -> Filter {
    let asked = match lambda_level {
        Some(level) if level.eq_ignore_ascii_case(FATAL) => "error",
        Some(level) => level,
        None => rust_log.unwrap_or("info"),
    };
    let directives = || asked.split(',').map(str::trim).filter(|directive| !directive.is_empty());
    let everything = directives().filter_map(|directive| directive.parse::<LevelFilter>().ok()).next_back();
    let verbose = everything.is_some_and(|level| level > LevelFilter::INFO);
    // What is asked for comes last, so that it overrides.
    let quiet = VERBOSE_CRATES.iter().filter(|_| verbose).map(|target| (*target, LevelFilter::INFO));
    let (mut targets, mut ignored) = (Targets::new().with_targets(quiet), Vec::new());
    for directive in directives() {
        let parsed = directive.parse::<Targets>().ok().filter(|_| !directive.contains('['));
        match parsed.map(|one| (one.default_level(), one)) {
            Some((Some(level), _)) => targets = targets.with_default(level),
            // A word that is no level, as `warning`, would be a target, and the only one that is logged.
            Some((None, one)) if directive.contains('=') => targets = targets.with_targets(one),
            _ => ignored.push(directive.to_owned()),
        }
    }
    // Where nothing is understood, it is as if nothing was asked for.
    if ignored.len() == directives().count() {
        targets = targets.with_default(LevelFilter::INFO);
    }
    if !ignored.is_empty() {
        targets = targets.with_target(module_path!(), LevelFilter::WARN);
    }
    Filter { targets, ignored }
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
    use tracing::Level;

    use super::*;
    use crate::child;

    const SECRET: &str = "ada@example.com";

    /// As the worker of an inbox calls it.
    #[test]
    fn a_program_of_its_own_logs_what_goes_wrong_and_no_data_of_a_panic() {
        let Some(ended) =
            child::ended("logging::tests::a_program_of_its_own_logs_what_goes_wrong_and_no_data_of_a_panic")
        else {
            crate::init_logs();
            tracing::warn!("attempt failed");
            let _ = std::thread::spawn(|| panic!("{SECRET} is no number: {:?}", SECRET.parse::<u8>())).join();
            return;
        };
        let [said, errors] = [&ended.stdout, &ended.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        assert!(said.contains("attempt failed") && said.contains("panic; its message is left out"), "{said}{errors}");
        assert!(!said.contains(SECRET) && !errors.contains(SECRET), "{said}{errors}");
    }

    /// Whatever else is asked for, what is ignored of it is said.
    #[test]
    fn a_filter_that_is_not_understood_is_named_in_the_log() {
        const TEST: &str = "logging::tests::a_filter_that_is_not_understood_is_named_in_the_log";
        for asked in ["[message]=debug", "error,[message]=debug", "orders=debug,[message]=debug"] {
            let Some(ended) = child::ended_with(TEST, &[("RUST_LOG", asked)]) else { return crate::init_logs() };
            let said = String::from_utf8_lossy(&ended.stdout);
            assert!(said.contains("log filters") && said.contains("[message]=debug"), "{asked}: {said}");
        }
    }

    fn targets(lambda_level: Option<&str>, rust_log: Option<&str>) -> Targets {
        let filter = filter(lambda_level, rust_log);
        assert_eq!(filter.ignored, Vec::<String>::new());
        filter.targets
    }

    #[test]
    fn lambdas_level_wins() {
        for (lambda, rust, wanted) in [
            (None, None, Level::INFO),
            (None, Some("warn"), Level::WARN),
            (Some("WARN"), Some("debug"), Level::WARN),
            (Some("FATAL"), None, Level::ERROR),
            (Some("TRACE"), None, Level::TRACE),
        ] {
            let targets = targets(lambda, rust);
            for level in [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE] {
                assert_eq!(targets.would_enable("orders", &level), level <= wanted, "{lambda:?} {rust:?} {level}");
            }
        }
    }

    #[test]
    fn talkative_crates_stay_quiet_unless_named_in_full() {
        let quiet = targets(Some("DEBUG"), None);
        for target in VERBOSE_CRATES {
            let within = format!("{target}::within");
            assert!(
                quiet.would_enable(&within, &Level::INFO) && !quiet.would_enable(&within, &Level::DEBUG),
                "{target}"
            );
        }
        for named in ["aws_smithy_runtime", "hyper"] {
            let filter = targets(None, Some(&format!("debug, {named}=trace")));
            assert!(
                filter.would_enable(named, &Level::TRACE) && !filter.would_enable("rustls", &Level::DEBUG),
                "{named}"
            );
        }
        let own = targets(None, Some("warn,orders=debug"));
        assert!(own.would_enable("orders::mail", &Level::DEBUG) && !own.would_enable("other", &Level::INFO));
        assert!(own.would_enable("other", &Level::WARN) && !own.would_enable("orders", &Level::TRACE));
    }

    #[test]
    fn what_is_not_understood_is_left_out() {
        for (asked, level, ignored) in [
            ("info,[message]=debug", Level::INFO, &["[message]=debug"][..]),
            ("orders=loud", Level::INFO, &["orders=loud"]),
            ("warning", Level::INFO, &["warning"]),
            ("debug,orders", Level::DEBUG, &["orders"]),
            ("[message{attempt=2}]=trace,a=b=c", Level::INFO, &["[message{attempt=2}]=trace", "a=b=c"]),
        ] {
            let filter = filter(None, Some(asked));
            assert_eq!(filter.ignored, ignored);
            assert!(filter.targets.would_enable("orders", &level), "{asked}");
            assert!(!filter.targets.would_enable("orders", &Level::TRACE), "{asked}");
        }
    }
}
