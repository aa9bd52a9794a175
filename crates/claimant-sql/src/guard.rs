//! Refuses statements of a handler that would end the claim's transaction, or could hide that they do, or change a setting of
//! the session. Other state of the session (locks, temporary tables, cursors) is cleared with the commit and the rollback, by
//! the statements that the dialects add to them.

/// The statements of a database that affect the transaction itself.
pub(crate) struct Rules {
    /// First words of statements.
    words: &'static [&'static str],
    /// Whether only these words are allowed, or all but these.
    allowed: bool,
    /// The error of a handler whose statement is refused for its first word.
    why: &'static str,
    /// Beginnings of comments that the server executes.
    executed_comments: &'static [&'static str],
    /// The characters that end a line, and with it a line comment.
    line_ends: &'static [char],
    /// Whether comments nest.
    nested_comments: bool,
    /// Whether `#` begins a comment.
    hash_comments: bool,
    /// Returns why a text is refused whose first word is not, if it is.
    further: fn(&str, &Self) -> Option<&'static str>,
}

/// PostgreSQL refuses to end a transaction from inside a function, a procedure or a DO block; these words remain, and they
/// cannot be hidden. DDL is part of the transaction.
#[cfg(feature = "postgres")]
pub(crate) const POSTGRES: Rules = Rules {
    words: &[
        "",
        "ABORT",
        "BEGIN",
        "COMMIT",
        "DEALLOCATE",
        "DISCARD",
        "END",
        "LISTEN",
        "LOAD",
        "PREPARE",
        "RELEASE",
        "RESET",
        "ROLLBACK",
        "SAVEPOINT",
        "START",
        "UNLISTEN",
    ],
    allowed: false,
    why: "the transaction is the claim's, and ends with the handler: return Ok to commit, an error to roll back; and what \
          would stay with its connection is refused, too",
    executed_comments: &[],
    line_ends: &['\n', '\r'],
    nested_comments: true,
    hash_comments: false,
    further: lasting_setting,
};

/// An inbox's handlers may send savepoints, and set what a session keeps: that is cleared when its connection returns, beside what they prepare
/// or load, which they should not.
#[cfg(feature = "postgres")]
pub(crate) const INBOX: Rules = Rules {
    words: &["ABORT", "BEGIN", "COMMIT", "END", "START"],
    why: "the transaction is the worker's, and ends with the handler: return Ok to commit, an error to roll back; for a savepoint \
          send SAVEPOINT and ROLLBACK TO SAVEPOINT",
    further: ending_of_two_words,
    ..POSTGRES
};

/// On MySQL nearly every statement can commit: definitions, SET, LOCK TABLES, a procedure, a prepared statement.
#[cfg(feature = "mysql")]
pub(crate) const MYSQL: Rules = Rules {
    words: &[
        "DELETE", "DESC", "DESCRIBE", "DO", "EXPLAIN", "INSERT", "REPLACE", "SELECT", "SHOW", "TABLE", "UPDATE",
        "VALUES", "WITH",
    ],
    allowed: true,
    why: "only statements that read and write rows are let through, since nearly all others can commit: the transaction is the \
         claim's, and ends with the handler: return Ok to commit, an error to roll back",
    executed_comments: &["/*!", "/*M!"],
    line_ends: &['\n'],
    nested_comments: false,
    hash_comments: true,
    further: user_variable,
};

/// Returns why a statement is refused, if it is. `bound`: it is sent with bound values, for which servers accept only one
/// statement.
pub(crate) fn refusal(sql: &str, bound: bool, rules: &Rules) -> Option<&'static str> {
    // A text that may hold several statements is not parsed further: databases differ in what is a literal or a comment.
    if !bound && sql.trim_end().trim_end_matches([';', ' ', '\t', '\r', '\n']).contains(';') {
        return Some(
            "several statements in one text are refused, and `;` in a text without bound values: send it by sqlx::query",
        );
    }
    if rules.executed_comments.iter().any(|comment| sql.contains(comment)) {
        return Some("comments that the server executes are refused");
    }
    let word = first_word(sql, rules).0.to_ascii_uppercase();
    (rules.words.contains(&word.as_str()) != rules.allowed).then_some(rules.why).or_else(|| (rules.further)(sql, rules))
}

/// Returns why a `SET` is refused that is not for this transaction alone, a `DO` block, a call of `set_config` whose last argument is not the
/// word `true`, and an `UPDATE` of the view of all settings.
#[cfg(feature = "postgres")]
fn lasting_setting(sql: &str, rules: &Rules) -> Option<&'static str> {
    let (word, rest) = first_word(sql, rules);
    match (word.to_ascii_uppercase().as_str(), first_word(rest, rules).0.to_ascii_uppercase().as_str()) {
        ("SET", "LOCAL" | "CONSTRAINTS") => return None,
        ("SET", "TRANSACTION") => {
            return Some("the transaction keeps the isolation level and the access mode that claimant began it with");
        }
        ("SET", _) => {
            return Some("a setting would stay with the connection when the transaction is over: use SET LOCAL");
        }
        ("DO", _) => {
            return Some(
                "a DO block can hide what would stay with the connection, such as SET: call a function of yours",
            );
        }
        _ => {}
    }
    let lower = sql.to_ascii_lowercase();
    let calls = lower
        .split("set_config")
        .skip(1)
        .filter_map(|rest| rest.trim_start_matches(|c: char| c.is_whitespace() || c == '"').strip_prefix('('));
    let lasts = |arguments: &str| last_argument(arguments) != "true";
    let in_name = |c: char| c.is_alphanumeric() || c == '_';
    let is_word =
        |(at, word): (usize, &str)| !lower[..at].ends_with(in_name) && !lower[at + word.len()..].starts_with(in_name);
    let updates = lower.contains("pg_settings") && lower.match_indices("update").any(is_word);
    (updates || calls.into_iter().any(lasts)).then_some(
        "a setting would stay with the connection when the transaction is over: use SET LOCAL, or set_config(…, …, true)",
    )
}

/// Returns why `ROLLBACK` is refused that is not one to a savepoint, and `PREPARE TRANSACTION`.
#[cfg(feature = "postgres")]
fn ending_of_two_words(sql: &str, rules: &Rules) -> Option<&'static str> {
    let (word, rest) = first_word(sql, rules);
    let (second, rest) = first_word(rest, rules);
    let is = |word: &str, other: &str| word.eq_ignore_ascii_case(other);
    let target = if is(second, "WORK") || is(second, "TRANSACTION") { first_word(rest, rules).0 } else { second };
    let ends = (is(word, "ROLLBACK") && !is(target, "TO")) || (is(word, "PREPARE") && is(second, "TRANSACTION"));
    ends.then_some(rules.why)
}

/// Returns the last argument of a call; `arguments` begins after the opening parenthesis.
#[cfg(feature = "postgres")]
fn last_argument(arguments: &str) -> &str {
    let (mut depth, mut quoted, mut begin) = (0_u32, false, 0);
    for (at, c) in arguments.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            _ if quoted => {}
            '(' => depth += 1,
            ')' if depth == 0 => return arguments[begin..at].trim(),
            ')' => depth -= 1,
            ',' if depth == 0 => begin = at + 1,
            _ => {}
        }
    }
    ""
}

/// Returns why `@a := 1` and `INTO @a` are refused.
#[cfg(feature = "mysql")]
fn user_variable(sql: &str, _: &Rules) -> Option<&'static str> {
    let lower = sql.to_ascii_lowercase();
    let into = lower.split("into").skip(1).any(|rest| rest.trim_start().starts_with('@'));
    (into || lower.contains(":=")).then_some(
        "a user variable would stay with the connection when the transaction is over; a `:=` in a value is sent as a bound one",
    )
}

/// Returns the first word of a statement, after comments, parentheses and empty statements, and what follows it.
fn first_word<'a>(sql: &'a str, rules: &Rules) -> (&'a str, &'a str) {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';' || c == '(');
        rest = if rest.starts_with("--") || (rules.hash_comments && rest.starts_with('#')) {
            rest.split_once(rules.line_ends).map_or("", |(_, rest)| rest)
        } else if let Some(comment) = rest.strip_prefix("/*") {
            after_comment(comment, rules.nested_comments)
        } else {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            return rest.split_at(end);
        };
    }
}

/// Returns what follows a comment; `rest` begins after the comment's first characters.
fn after_comment(mut rest: &str, nested: bool) -> &str {
    let mut depth = 1_u32;
    while depth > 0 {
        let (end, begin) = (rest.find("*/"), rest.find("/*").filter(|_| nested));
        (rest, depth) = match (end, begin) {
            (Some(end), Some(begin)) if begin < end => (&rest[begin + 2..], depth + 1),
            (Some(end), _) => (&rest[end + 2..], depth - 1),
            (None, _) => return "",
        };
    }
    rest
}

#[cfg(all(test, feature = "mysql", feature = "postgres"))]
mod tests {
    use super::*;

    #[test]
    fn what_ends_the_transaction_is_refused_however_it_is_dressed() {
        // The text, whether it goes with bound values, and whether each database's rules let it through.
        let rows = [
            ("SELECT 1", true, true, true),
            ("select 1;", false, true, true),
            (" ( SELECT 1 ) ; ", false, true, true),
            ("/* a note */ UPDATE t SET a = 1 -- COMMIT", true, true, true),
            ("INSERT INTO t VALUES ('COMMIT; BEGIN')", true, true, true),
            ("INSERT INTO t VALUES ('a;b')", false, false, false),
            ("WITH a AS (SELECT 1) SELECT * FROM a", true, true, true),
            ("COMMIT", true, false, false),
            ("commit;", false, false, false),
            ("\n\tRollback", true, false, false),
            ("-- why not\nCOMMIT", true, false, false),
            ("-- why not\rCOMMIT", true, false, false),
            ("-- nothing", true, false, false),
            ("SET search_path = other", true, false, false),
            ("SET /* for good */ SESSION a.b = 1", true, false, false),
            ("set local a.b = 1", true, true, false),
            ("SET CONSTRAINTS ALL DEFERRED", true, true, false),
            ("LISTEN a", true, false, false),
            ("RESET ROLE", true, false, false),
            ("/* a */ /* b */ END", true, false, false),
            // To MySQL, a SELECT that does not parse.
            ("/* a /* b */ SELECT 1 */ COMMIT", true, false, true),
            (";;COMMIT", true, false, false),
            ("BEGIN", true, false, false),
            ("START TRANSACTION", true, false, false),
            ("SAVEPOINT a", true, false, false),
            ("RELEASE SAVEPOINT a", true, false, false),
            ("PREPARE TRANSACTION 'a'", true, false, false),
            ("SELECT 1; COMMIT; SELECT 2", false, false, false),
            ("SELECT 1;COMMIT", false, false, false),
            ("COMMITTED", true, true, false),
            ("CREATE TABLE t (id int)", true, true, false),
            ("SET LOCAL app.tenant = '7'", true, true, false),
            ("CALL settle_up()", true, true, false),
            ("SET autocommit = 1", true, false, false),
            ("LOCK TABLES t WRITE", true, true, false),
            ("XA END 'a'", true, true, false),
            ("EXECUTE hidden", true, true, false),
            ("/*!50000 COMMIT */", true, false, false),
            ("SELECT 1 /*M! , 2 */", true, true, false),
            ("", true, false, false),
            // What would stay with the connection (F16).
            ("SELECT set_config('search_path', 'other', false)", true, false, true),
            ("SELECT \"set_config\" ( 'a.b', f(1, true), $1 )", true, false, true),
            ("SELECT SET_CONFIG('a.b', '), true', false)", true, false, true),
            ("WITH a AS (UPDATE pg_settings SET setting = 'other') SELECT 1", true, false, true),
            ("SELECT last_update FROM prices, pg_settings", true, true, true),
            ("UPDATE pg_settings SET setting = 'other' WHERE name = 'search_path'", true, false, true),
            ("SELECT setting FROM pg_settings WHERE name = 'update_process_title'", true, true, true),
            ("DO $$ BEGIN SET search_path = other; END $$", true, false, true),
            ("SELECT set_config('a.b', '7', TRUE)", true, true, true),
            ("LOAD 'auto_explain'", true, false, false),
            ("SELECT @a := 1", true, true, false),
            ("SELECT a INTO\n@a FROM t", true, true, false),
            ("INSERT INTO t VALUES ('ada@example.com')", true, true, true),
            // These do not stay: the commit and the rollback give them back.
            ("SELECT pg_advisory_lock(7)", true, true, true),
            ("SELECT GET_LOCK('a', 1)", true, true, true),
        ];
        for (sql, bound, postgres, mysql) in rows {
            assert_eq!(refusal(sql, bound, &POSTGRES).is_none(), postgres, "PostgreSQL: {sql}");
            assert_eq!(refusal(sql, bound, &MYSQL).is_none(), mysql, "MySQL: {sql}");
        }
        let hash = "# a note\nCOMMIT";
        assert!(refusal(hash, true, &MYSQL).is_some());
    }

    #[test]
    fn an_inbox_refuses_what_ends_the_transaction_and_no_savepoint() {
        let rows = [
            ("SELECT 1", true, true),
            ("SAVEPOINT a", true, true),
            ("release savepoint a", false, true),
            ("ROLLBACK TO SAVEPOINT a", true, true),
            ("rollback /* to COMMIT */ to a;", false, true),
            ("ROLLBACK WORK TO a", true, true),
            ("ROLLBACK TRANSACTION TO SAVEPOINT a", true, true),
            ("SET app.tenant = '7'", true, true),
            ("SET TRANSACTION READ ONLY", true, true),
            ("DO $$ BEGIN PERFORM 1; END $$", true, true),
            ("LISTEN a", true, true),
            ("COMMIT", true, false),
            (" /* a */ commit work;", false, false),
            ("END", true, false),
            ("ABORT", true, false),
            ("BEGIN", true, false),
            ("START TRANSACTION", true, false),
            ("ROLLBACK", true, false),
            ("-- TO\nrollback work", true, false),
            ("ROLLBACK AND CHAIN", true, false),
            ("PREPARE TRANSACTION 'a'", true, false),
            ("SAVEPOINT a; COMMIT", false, false),
        ];
        for (sql, bound, wanted) in rows {
            assert_eq!(refusal(sql, bound, &INBOX).is_none(), wanted, "{sql}");
        }
    }

    /// What it sets ends with it.
    #[test]
    fn a_mode_of_the_transaction_is_no_setting_that_stays() {
        let why = refusal("set transaction READ ONLY", true, &POSTGRES).unwrap();
        assert!(!why.contains("SET LOCAL"), "{why}");
    }
}
