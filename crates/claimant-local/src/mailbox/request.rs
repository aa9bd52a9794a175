//! A `SendEmail` request read into a mail, refused where SES would refuse it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;

use super::mail::{Field, Mail, TEXT_MAX_BYTES, bare_address, value_of};

/// Recipients of one mail.
const RECIPIENTS_MAX: usize = 50;
/// Custom headers of one mail.
const HEADERS_MAX: usize = 15;
const HEADER_NAME_MAX_BYTES: usize = 126;
const HEADER_VALUE_MAX_BYTES: usize = 870;
const TAGS_MAX: usize = 50;
const TAG_MAX_BYTES: usize = 256;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SendEmail {
    from_email_address: Option<String>,
    destination: Option<Destination>,
    content: Option<Content>,
    #[serde(default)]
    email_tags: Vec<Field>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct Destination {
    to_addresses: Vec<String>,
    cc_addresses: Vec<String>,
    bcc_addresses: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Content {
    simple: Option<Simple>,
    raw: Option<Raw>,
    template: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Simple {
    subject: Option<Text>,
    body: Option<Body>,
    #[serde(default)]
    headers: Vec<Field>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Body {
    text: Option<Text>,
    html: Option<Text>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Text {
    data: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Raw {
    data: String,
}

/// Reads a request body. The error is what the sender gets, and never quotes the mail.
pub(super) fn parse(body: &[u8], message_id: String) -> Result<Mail, String> {
    let request: SendEmail = serde_json::from_slice(body)
        .map_err(|e| format!("the SendEmail request is not the JSON that SES v2 takes: {e}"))?;
    check_tags(&request.email_tags)?;
    let destination = request.destination.unwrap_or_default();
    let mut to = destination.to_addresses;
    to.extend(destination.cc_addresses);
    to.extend(destination.bcc_addresses);

    let content = request.content.ok_or("Content is missing: give Content.Simple or Content.Raw")?;
    let mut mail = match (content.simple, content.raw, content.template) {
        (Some(simple), None, None) => from_simple(simple)?,
        (None, Some(raw), None) => from_raw(&raw)?,
        (None, None, Some(_)) => {
            return Err("Content.Template is not known to the local mailbox: send Content.Simple or Content.Raw".into());
        }
        _ => return Err("Content must hold exactly one of Simple and Raw".into()),
    };
    if let Some(from) = request.from_email_address {
        mail.from = from;
    }
    check_address("FromEmailAddress", &mail.from)?;
    if !to.is_empty() {
        mail.to = to;
    }
    let recipients = mail.to.len();
    if !(1..=RECIPIENTS_MAX).contains(&recipients) {
        return Err(format!(
            "Destination holds {recipients} recipients: give 1 to {RECIPIENTS_MAX}, counting to, cc and bcc"
        ));
    }
    for address in &mail.to {
        check_address("Destination", address)?;
    }
    mail.message_id = message_id;
    mail.tags = request.email_tags;
    Ok(mail)
}

fn from_simple(simple: Simple) -> Result<Mail, String> {
    let subject = simple.subject.ok_or("Content.Simple.Subject is missing")?.data;
    let body = simple.body.ok_or("Content.Simple.Body is missing")?;
    let text = body.text.or(body.html);
    let text = text.ok_or("Content.Simple.Body holds neither Text nor Html")?.data;
    check_headers(&simple.headers)?;
    Ok(mail(subject, simple.headers, &text))
}

/// A raw mail, whose own sender and recipients count where the request has none.
fn from_raw(raw: &Raw) -> Result<Mail, String> {
    let bytes = BASE64.decode(&raw.data).map_err(|e| format!("Content.Raw.Data is not base64: {e}"))?;
    let message = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
    let (head, text) =
        message.split_once("\n\n").ok_or("Content.Raw.Data is not a mail: no empty line ends its headers")?;
    let mut headers: Vec<Field> = Vec::new();
    for line in head.lines() {
        if let (true, Some(last)) = (line.starts_with([' ', '\t']), headers.last_mut()) {
            last.value.push(' ');
            last.value.push_str(line.trim());
            continue;
        }
        let (name, value) = line.split_once(':').ok_or("Content.Raw.Data is not a mail: a header line has no colon")?;
        headers.push(Field { name: name.trim().into(), value: value.trim().into() });
    }
    let value = |name| value_of(&headers, name).unwrap_or_default();
    let (subject, from, to) = (value("subject").to_owned(), value("from").to_owned(), split_addresses(value("to")));
    Ok(Mail { from, to, ..mail(subject, headers, text) })
}

/// A mail without its envelope.
fn mail(subject: String, headers: Vec<Field>, text: &str) -> Mail {
    Mail {
        message_id: String::new(),
        from: String::new(),
        to: Vec::new(),
        subject,
        headers,
        tags: Vec::new(),
        text: text[..text.floor_char_boundary(TEXT_MAX_BYTES)].to_owned(),
    }
}

/// Divides at commas, but for those in a display name in quotes.
fn split_addresses(list: &str) -> Vec<String> {
    let (mut quoted, mut escaped) = (false, false);
    let divides = |c: char| {
        quoted ^= c == '"' && !escaped;
        escaped = quoted && !escaped && c == '\\';
        c == ',' && !quoted
    };
    let parts = list.split(divides).map(str::trim);
    parts.filter(|a| !a.is_empty()).map(str::to_owned).collect()
}

fn check_address(member: &str, address: &str) -> Result<(), String> {
    let bare = bare_address(address);
    let good = bare.bytes().all(|b| b.is_ascii_graphic())
        && bare.rsplit_once('@').is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty());
    if good {
        return Ok(());
    }
    Err(format!(
        "{member} is not an e-mail address: it must be local@domain in printable ASCII (or Name <local@domain>)"
    ))
}

fn check_headers(headers: &[Field]) -> Result<(), String> {
    if headers.len() > HEADERS_MAX {
        return Err(format!("Content.Simple.Headers holds {}: at most {HEADERS_MAX}", headers.len()));
    }
    for header in headers {
        let name = header.name.as_bytes();
        let name_ok = !name.is_empty() && name.iter().all(|b| b.is_ascii_graphic() && *b != b':');
        if !name_ok || name.len() > HEADER_NAME_MAX_BYTES {
            return Err(format!(
                "a header name must be 1 to {HEADER_NAME_MAX_BYTES} printable ASCII characters without a colon"
            ));
        }
        let value = header.value.as_bytes();
        let value_ok = !value.is_empty() && value.iter().all(|b| (b' '..=b'~').contains(b));
        if !value_ok || value.len() > HEADER_VALUE_MAX_BYTES {
            return Err(format!(
                "the value of header {} must be 1 to {HEADER_VALUE_MAX_BYTES} printable ASCII characters",
                header.name
            ));
        }
    }
    Ok(())
}

fn check_tags(tags: &[Field]) -> Result<(), String> {
    if tags.len() > TAGS_MAX {
        return Err(format!("EmailTags holds {}: at most {TAGS_MAX}", tags.len()));
    }
    let good = |s: &str, extra: &[u8]| {
        (1..=TAG_MAX_BYTES).contains(&s.len())
            && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b) || extra.contains(&b))
    };
    if tags.iter().all(|tag| good(&tag.name, b"") && good(&tag.value, b"@.")) {
        return Ok(());
    }
    Err(format!(
        "an EmailTags name or value must be 1 to {TAG_MAX_BYTES} ASCII letters, digits, _ or - (values also @ and .)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(request: serde_json::Value, expected: Result<&str, &str>) {
        let found = parse(request.to_string().as_bytes(), "id".into());
        match (&found, expected) {
            (Ok(mail), Ok(subject)) => assert_eq!(mail.subject, subject, "{request}"),
            (Err(message), Err(part)) => assert!(message.contains(part), "{request}: {message}"),
            _ => panic!("{request}: {found:?}"),
        }
    }

    #[test]
    fn requests() {
        let simple = json!({"Simple": {"Subject": {"Data": "hi"}, "Body": {"Text": {"Data": "t"}}}});
        let to = json!({"ToAddresses": ["Ada <ada@example.com>"]});
        let from = "shop@example.com";
        check(json!({"FromEmailAddress": from, "Destination": to, "Content": simple}), Ok("hi"));
        check(json!({"Destination": to, "Content": simple}), Err("FromEmailAddress"));
        check(json!({"FromEmailAddress": "nobody", "Destination": to, "Content": simple}), Err("FromEmailAddress"));
        check(json!({"FromEmailAddress": from, "Content": simple}), Err("0 recipients"));
        check(
            json!({"FromEmailAddress": from, "Destination": {"ToAddresses": ["a@b c"]}, "Content": simple}),
            Err("Destination is not"),
        );
        check(json!({"FromEmailAddress": from, "Destination": to}), Err("Content is missing"));
        check(json!({"FromEmailAddress": from, "Destination": to, "Content": {}}), Err("exactly one"));
        check(json!({"FromEmailAddress": from, "Destination": to, "Content": {"Template": {}}}), Err("Template"));
        check(
            json!({"FromEmailAddress": from, "Destination": to, "Content": simple, "EmailTags": [{"Name": "a b", "Value": "c"}]}),
            Err("EmailTags"),
        );
        check(
            json!({"FromEmailAddress": from, "Destination": to,
                "Content": {"Simple": {"Subject": {"Data": "s"}, "Body": {"Text": {"Data": "t"}},
                    "Headers": [{"Name": "X-Claimant-Key", "Value": "a\nb"}]}}}),
            Err("X-Claimant-Key"),
        );
        // Headers of a simple mail are no envelope.
        for (given, missing) in [("Destination", "FromEmailAddress"), ("FromEmailAddress", "0 recipients")] {
            let own = json!([{"Name": "From", "Value": from}, {"Name": "To", "Value": "ada@example.com"}]);
            let mut request = json!({"Content": {"Simple": simple["Simple"]}});
            request["Content"]["Simple"]["Headers"] = own;
            request[given] = if given == "Destination" { to.clone() } else { json!(from) };
            check(request, Err(missing));
        }
        check(json!([1]), Err("not the JSON"));
    }

    #[test]
    fn a_raw_mail_brings_its_own_headers() {
        let data = BASE64.encode("To: ada@example.com\r\nSubject: one\r\n two\r\nX-Claimant-Key: k\r\n\r\nbody\r\n");
        let request = json!({"FromEmailAddress": "s@example.com", "Content": {"Raw": {"Data": data}}});
        let mail = parse(request.to_string().as_bytes(), "id".into()).unwrap();
        assert_eq!((mail.from.as_str(), mail.subject.as_str()), ("s@example.com", "one two"));
        assert_eq!(mail.to, ["ada@example.com"]);
        assert_eq!(mail.header("x-claimant-key"), Some("k"));
        assert_eq!(mail.text, "body\n");
        // Without `FromEmailAddress` its own sender counts, and there must be one.
        check(json!({"Content": {"Raw": {"Data": data}}}), Err("FromEmailAddress"));
        let data = BASE64.encode("From: Shop <s@example.com>\r\nTo: ada@example.com\r\nSubject: one\r\n\r\n");
        check(json!({"Content": {"Raw": {"Data": data}}}), Ok("one"));
    }

    #[test]
    fn a_comma_in_quotes_divides_no_addresses() {
        for (list, expected) in [
            ("a@example.com, b@example.com,", &["a@example.com", "b@example.com"][..]),
            (
                r#""Lovelace, Ada" <ada@example.com>, b@example.com"#,
                &[r#""Lovelace, Ada" <ada@example.com>"#, "b@example.com"],
            ),
            (r#""a \", b" <ada@example.com>"#, &[r#""a \", b" <ada@example.com>"#]),
            ("", &[]),
        ] {
            assert_eq!(split_addresses(list), expected, "{list}");
        }
    }
}
