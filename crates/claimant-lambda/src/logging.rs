//! Log level and format from Lambda's variables; panics logged without payload data.

use std::fmt;
use std::io::{self, Write};
use std::panic::PanicHookInfo;

use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Levels that Lambda knows and `tracing` does not.
const FATAL: &str = "FATAL";

/// Crates that log requests and events, bodies included, below `info`. They stay at `info` where everything is asked for
/// at `debug` or `trace`; `RUST_LOG` can still name one of them in full. Releases with claimant's feature `release_max_level_info` have no such logs.
const VERBOSE_CRATES: [&str; 7] = ["aws_", "h2", "hyper", "lambda_runtime", "opentelemetry", "rustls", "tower"];

/// What PostgreSQL's triggers and functions say, at the level that they choose: with whatever they put into it, as a server's errors.
const NOTICES: &str = "sqlx::postgres::notice";

/// Sets up logs and the panic hook, as [`run`](crate::run) and [`Service::new`](crate::Service::new) do by themselves: for programs
/// that call neither, on Lambda or elsewhere, such as the worker of an inbox. Without it, nothing of claimant is logged in them, and Rust
/// prints panics in full.
///
/// Logs go to standard output: as JSON where `AWS_LAMBDA_LOG_FORMAT` is `JSON`, from the level that `AWS_LAMBDA_LOG_LEVEL`, else
/// `RUST_LOG`, else `info` says. A line that cannot be written is lost. A `tracing` subscriber that is set already stays; it must not
/// panic where nothing can be written (`log_internal_errors(false)` in `tracing-subscriber`), since that ends the process. Panics are logged without their data in any case: a
/// panic's message can quote a payload.
pub fn init() {
    let var = |name: &str| std::env::var(name).ok().filter(|v| !v.trim().is_empty());
    let Filter { targets, ignored } = filter(var("AWS_LAMBDA_LOG_LEVEL").as_deref(), var("RUST_LOG").as_deref());
    let json = var("AWS_LAMBDA_LOG_FORMAT").is_some_and(|f| f.eq_ignore_ascii_case("json"));
    let logs = tracing_subscriber::fmt().with_writer(|| Output).with_max_level(LevelFilter::TRACE).with_target(false);
    let set = if json {
        // With a time: Lambda takes a JSON line without one for `INFO`, and its level filter then drops errors.
        logs.json().flatten_event(true).with_span_list(false).finish().with(targets).try_init()
    } else {
        // Without: Lambda stamps each line of text.
        logs.without_time().with_ansi(false).compact().map_event_format(OneLine).finish().with(targets).try_init()
    };
    // An error means that the function has set its own subscriber, which then stays.
    if set.is_ok() && !ignored.is_empty() {
        tracing::warn!(?ignored, "log filters other than level and target=level are ignored");
    }
    std::panic::set_hook(Box::new(log_panic));
}

/// Standard output, where a line that cannot be written is lost, and no error to who logs it: `tracing-subscriber` would print that by
/// `eprintln!`, which panics where standard error cannot be written either, and a panic that is logged while another one is ends the process.
struct Output;

impl Write for Output {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Err(error) = io::stdout().write_all(line) {
            let _ = writeln!(io::stderr(), "a log line could not be written to standard output: {error}");
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
    let (mut general, mut named, mut ignored) = (None, Vec::new(), Vec::new());
    for directive in asked.split(',').map(str::trim).filter(|directive| !directive.is_empty()) {
        // An empty target would be one that all names begin with.
        let is_odd = directive.contains('[') || directive.starts_with('=');
        let parsed = directive.parse::<Targets>().ok().filter(|_| !is_odd);
        match parsed.map(|one| (one.default_level(), one)) {
            Some((Some(level), _)) => general = Some(level),
            // A word that is no level, as `warning`, would be a target, and the only one that is logged.
            Some((None, one)) if directive.contains('=') => named.extend(one),
            _ => ignored.push(directive.to_owned()),
        }
    }
    // Where nothing is understood, it is as if nothing was asked for.
    let otherwise = if named.is_empty() { LevelFilter::INFO } else { LevelFilter::OFF };
    let general = general.unwrap_or(otherwise);
    // Of two targets that a name begins with, the longer one counts: what is named in full.
    let quiet = VERBOSE_CRATES.map(|target| (target, general.min(LevelFilter::INFO)));
    let targets = Targets::new().with_default(general).with_targets(quiet).with_target(NOTICES, LevelFilter::OFF);
    // What is asked for comes last, so that it overrides.
    let mut targets = targets.with_targets(named);
    if !ignored.is_empty() {
        targets = targets.with_target(module_path!(), LevelFilter::WARN);
    }
    Filter { targets, ignored }
}

/// An event as text in one line: what an error quotes makes no line that reads like another event, and controls no terminal.
struct OneLine<F>(F);

impl<S, N, F> FormatEvent<S, N> for OneLine<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, cx: &FmtContext<'_, S, N>, mut line: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut text = String::new();
        self.0.format_event(cx, Writer::new(&mut text), event)?;
        for c in text.strip_suffix('\n').unwrap_or(&text).chars() {
            if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
                write!(line, "{}", c.escape_default())?;
            } else {
                line.write_char(c)?;
            }
        }
        line.write_char('\n')
    }
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

    #[test]
    fn an_event_is_one_line_of_text() {
        let Some(ended) = child::ended("logging::tests::an_event_is_one_line_of_text") else {
            crate::init_logs();
            let span = tracing::error_span!("message", group = "a\nb");
            let error = "upstream said:\r\n{\"message\":\"batch done\"}\n\u{1b}[31mGrüße\u{2028}";
            return span.in_scope(|| tracing::warn!(%error, "attempt failed"));
        };
        let said = String::from_utf8_lossy(&ended.stdout);
        let wanted = r#"error=upstream said:\r\n{"message":"batch done"}\n\u{1b}[31mGrüße\u{2028} group="a\nb""#;
        let line = said.lines().find(|line| line.contains("attempt failed"));
        assert!(line.is_some_and(|line| line.ends_with(wanted)), "{said}");
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
        for target in VERBOSE_CRATES.into_iter().chain(["opentelemetry-otlp"]) {
            let within = format!("{target}::within");
            assert!(
                quiet.would_enable(&within, &Level::INFO) && !quiet.would_enable(&within, &Level::DEBUG),
                "{target}"
            );
        }
        for named in ["aws_smithy_runtime", "hyper", "opentelemetry-otlp", NOTICES] {
            let filter = targets(None, Some(&format!("debug, {named}=trace")));
            assert!(
                filter.would_enable(named, &Level::TRACE) && !filter.would_enable("rustls", &Level::DEBUG),
                "{named}"
            );
        }
        // The beginning of a name is no name.
        for (asked, target) in
            [("info,aws=trace", "aws_smithy_runtime"), ("lambda=trace", "lambda_runtime"), ("sqlx=debug", NOTICES)]
        {
            assert!(!targets(None, Some(asked)).would_enable(target, &Level::DEBUG), "{asked}");
        }
        assert!(!quiet.would_enable(NOTICES, &Level::ERROR));
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
            ("=trace", Level::INFO, &["=trace"]),
            ("warn, =trace", Level::WARN, &["=trace"]),
            ("[message{attempt=2}]=trace,a=b=c", Level::INFO, &["[message{attempt=2}]=trace", "a=b=c"]),
        ] {
            let filter = filter(None, Some(asked));
            assert_eq!(filter.ignored, ignored);
            assert!(filter.targets.would_enable("orders", &level), "{asked}");
            assert!(!filter.targets.would_enable("orders", &Level::TRACE), "{asked}");
            assert!(!filter.targets.would_enable("hyper", &Level::DEBUG), "{asked}");
        }
    }
}
