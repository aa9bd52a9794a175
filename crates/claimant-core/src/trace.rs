//! The header that continues a producer's trace, checked before it goes anywhere.

/// The longest header that is parsed; those of tracing systems have about 100 bytes.
const HEADER_MAX_BYTES: usize = 256;

/// Returns the part of a trace header (`Root=…;Parent=…;Sampled=…`) that continues its trace: these three fields, in this order.
///
/// It comes from whoever sent the message and ends in logs and in other systems' headers, so what is not exactly of
/// the documented form is dropped: fields of other names, and the whole header where `Root` is missing or one of the
/// three is malformed.
#[must_use]
pub fn continued(header: &str) -> Option<String> {
    if header.len() > HEADER_MAX_BYTES {
        return None;
    }
    let field = |name: &str| {
        header
            .split(';')
            .filter_map(|field| field.split_once('='))
            .find(|(key, _)| key.trim() == name)
            .map(|(_, v)| v.trim())
    };
    let root = field("Root").filter(|root| is_root(root))?;
    let mut continued = format!("Root={root}");
    for (name, well_formed) in [("Parent", is_parent as fn(&str) -> bool), ("Sampled", is_sampled)] {
        match field(name) {
            None => {}
            Some(value) if well_formed(value) => continued.extend([";", name, "=", value]),
            Some(_) => return None,
        }
    }
    Some(continued)
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Returns whether this is a `Root`: a version, the seconds since the epoch, and 96 bits of chance.
#[must_use]
pub fn is_root(root: &str) -> bool {
    match root.split('-').collect::<Vec<_>>()[..] {
        ["1", seconds, chance] => is_hex(seconds, 8) && is_hex(chance, 24),
        _ => false,
    }
}

fn is_parent(parent: &str) -> bool {
    is_hex(parent, 16)
}

fn is_sampled(sampled: &str) -> bool {
    matches!(sampled, "0" | "1" | "?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_documented_form_is_passed_on() {
        let root = "Root=1-5759e988-bd862e3fe1be46a994272793";
        let whole = format!("{root};Parent=53995c3f42cd8ad8;Sampled=1");
        for (header, wanted) in [
            (whole.clone(), Some(whole.as_str())),
            (format!("Sampled=1 ; Parent=53995c3f42cd8ad8; {root};Lineage=a:0;Self=x"), Some(whole.as_str())),
            (root.to_owned(), Some(root)),
            (format!("{root};note=\n\u{1b}[31m"), Some(root)),
            (format!("{root};Sampled=yes"), None),
            (format!("{root};Parent=53995c3f42cd8ad"), None),
            ("Root=1-5759e988-bd862e3fe1be46a99427279\u{e9}".to_owned(), None),
            ("Parent=53995c3f42cd8ad8".to_owned(), None),
            (format!("{root};x={}", "y".repeat(256)), None),
            (String::new(), None),
        ] {
            assert_eq!(continued(&header).as_deref(), wanted, "{header}");
        }
    }
}
