//! Where the URL of a template's database leads.

use claimant_template::{Kind, Node};

use super::part::Part;
use super::resources::Resource;
use super::scope::HOLE;
use crate::environment::{DATABASE, Server};

/// The longest value that is compared as it is written.
const WRITTEN_MAX: usize = 16_384;

/// The server of a function with these variables; nothing if it has none, or that is not known.
pub(super) fn server(function: &Resource<'_>, variables: &Part<'_>) -> Option<Server> {
    let all = variables.node();
    let text = variables.at(DATABASE).text().known().cloned().flatten();
    // The same text means the same in the same stack.
    let mut written = format!("{} {} ", function.scope.file, function.scope.within.prefix);
    write(all.known()?.get(DATABASE)?, &mut written)?;
    Some(Server { address: text.as_deref().and_then(address), written })
}

/// The host and the port in a URL; nothing if it is none, or neither is known.
fn address(url: &str) -> Option<String> {
    // Without what would end the authority.
    let url = url.replace(HOLE, "${}");
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    // Stacks have values of their own, and the reference to a secret can have a slash.
    if authority.contains("${@") || authority.contains("{{") {
        return None;
    }
    let host = authority.rsplit('@').next().filter(|host| !host.is_empty() && !host.contains("${}"))?;
    let has_port = host.rsplit(']').next()?.contains(':');
    let port = match scheme {
        _ if has_port => "",
        "mysql" | "mariadb" => ":3306",
        "postgres" | "postgresql" => ":5432",
        _ => return None,
    };
    Some(format!("{host}{port}"))
}

/// Adds a value as it is written, without its lines; nothing of one that is too long.
fn write(node: &Node, to: &mut String) -> Option<()> {
    match &node.kind {
        Kind::Null => to.push('~'),
        Kind::Text(text) => to.push_str(&format!("{text:?}")),
        Kind::List(items) => {
            to.push('[');
            items.iter().try_for_each(|item| write(item, to))?;
            to.push(']');
        }
        Kind::Map(entries) => {
            to.push('{');
            for (key, value) in &**entries {
                to.push_str(&format!("{key:?}"));
                write(value, to)?;
            }
            to.push('}');
        }
        Kind::Call(name, argument) => {
            to.push_str(&format!("!{name} "));
            write(argument, to)?;
        }
    }
    (to.len() <= WRITTEN_MAX).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_host_and_a_port() {
        for (url, expected) in [
            ("postgres://u:p@db/orders?sslmode=verify-full", Some("db:5432")),
            ("postgresql://db", Some("db:5432")),
            ("mysql://u:${?}@db/orders", Some("db:3306")),
            ("mysql://u@db:4000/orders", Some("db:4000")),
            ("mariadb://u@db/${@StackName}", Some("db:3306")),
            ("postgres://u@[::1]/x@y", Some("[::1]:5432")),
            (
                "postgres://u@${In>Db.Endpoint.Address}:${In>Db.Endpoint.Port}/x",
                Some("${In>Db.Endpoint.Address}:${In>Db.Endpoint.Port}"),
            ),
            ("postgres://u@${?}/x", None),
            ("postgres://${?}", None),
            ("postgres://u@db-a.${@Region}.internal/x", None),
            ("postgres://u:{{resolve:secretsmanager:prod/a:SecretString:p}}@db/x", None),
            ("${?}://db/x", None),
            ("db", None),
        ] {
            assert_eq!(address(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn a_value_that_is_too_long_is_not_written() {
        for (length, is_written) in [(WRITTEN_MAX / 2, true), (WRITTEN_MAX, false)] {
            let value = Node::list(1, vec![Node::text(1, "x".repeat(length))]);
            assert_eq!(write(&value, &mut String::new()).is_some(), is_written, "{length}");
        }
    }
}
