//! The business: an order becomes one e-mail.

use aws_sdk_sesv2::Client;
use aws_sdk_sesv2::error::{BuildError, ProvideErrorMetadata, SdkError};
use aws_sdk_sesv2::operation::send_email::{SendEmailError, SendEmailOutput};
use aws_sdk_sesv2::types::{Body, Content, Destination, EmailContent, Message, MessageHeader};
use claimant::aws::Later;
use claimant::{Context, Handler, HandlerError, Terminal};
use serde::Deserialize;

/// The mail header that carries the key, so that the receiving side can recognise a repeat.
const KEY_HEADER: &str = "X-Claimant-Key";

/// SES allows 870 characters in a header's value.
const HEADER_VALUE_MAX_CHARS: usize = 870;

/// An order, as the shop sends it.
#[derive(Debug, Deserialize)]
pub(crate) struct Order {
    pub(crate) order_id: String,
    customer_email: String,
    items: Vec<Item>,
    currency: String,
}

/// One line of an order.
#[derive(Debug, Deserialize)]
pub(crate) struct Item {
    sku: String,
    quantity: u32,
    unit_price_cents: u64,
}

/// Sends mail from one address.
#[derive(Debug)]
pub(crate) struct Mailer {
    ses: Later<Client>,
    sender: String,
}

impl Mailer {
    pub(crate) fn new(ses: Later<Client>, sender: String) -> Self {
        Self { ses, sender }
    }

    async fn send(&self, to: &str, message: Message) -> Result<(), HandlerError> {
        let sent = self
            .ses
            .send_email()
            .from_email_address(&self.sender)
            .destination(Destination::builder().to_addresses(to).build())
            .content(EmailContent::builder().simple(message).build())
            .send()
            .await;
        confirmed(&sent.map_err(|e| failure(&e))?)
    }
}

/// Confirms an order by mail.
impl Handler<Order> for Mailer {
    type Output = ();

    async fn handle(&self, order: Order, cx: Context) -> Result<(), HandlerError> {
        let message = render(&order, cx.key()).terminal()?;
        self.send(&order.customer_email, message).await
    }
}

fn render(order: &Order, key: &str) -> Result<Message, &'static str> {
    if !order.customer_email.contains('@') || order.customer_email.contains(char::is_control) {
        return Err("the customer's address is not an e-mail address");
    }
    let mut text = format!("Thank you for your order {}.\n\n", order.order_id);
    let mut total: u64 = 0;
    for item in &order.items {
        let price = item.unit_price_cents.checked_mul(item.quantity.into()).ok_or("a price is too large")?;
        total = total.checked_add(price).ok_or("the total is too large")?;
        text.push_str(&format!("{} x {}  {}\n", item.quantity, item.sku, amount(price, &order.currency)));
    }
    text.push_str(&format!("\nTotal: {}\n", amount(total, &order.currency)));
    let incomplete = |_: BuildError| "the mail is incomplete";
    let content = |text: String| Content::builder().data(text).charset("UTF-8").build().map_err(incomplete);
    let header = MessageHeader::builder().name(KEY_HEADER).value(header_value(key)).build().map_err(incomplete)?;
    Ok(Message::builder()
        .subject(content(format!("Your order {}", order.order_id))?)
        .body(Body::builder().text(content(text)?).build())
        .headers(header)
        .build())
}

/// The key as a header can carry it: printable ASCII, bounded. Order ids are; anything else is escaped.
fn header_value(key: &str) -> String {
    let safe = |c: char| c.is_ascii_graphic();
    let escaped = key.chars().flat_map(|c| if safe(c) { vec![c] } else { c.escape_unicode().collect() });
    escaped.take(HEADER_VALUE_MAX_CHARS).collect()
}

fn amount(cents: u64, currency: &str) -> String {
    format!("{}.{:02} {currency}", cents / 100, cents % 100)
}

/// Returns whether SES has taken the mail: it names each that it takes. What answers in its place, such as a proxy, does not.
fn confirmed(sent: &SendEmailOutput) -> Result<(), HandlerError> {
    match sent.message_id() {
        Some(id) if !id.is_empty() => Ok(()),
        _ => Err(HandlerError::retry("the mail was not confirmed: what answered is not SES")),
    }
}

/// What SES answered: its code only, since its texts can quote addresses.
fn failure(error: &SdkError<SendEmailError>) -> HandlerError {
    let code = error.code().unwrap_or("no answer that can be read");
    let fix = match code {
        "AccessDeniedException" => ": the role needs ses:SendEmail on the identity and on its configuration set",
        _ => "",
    };
    let why = format!("SES did not confirm the mail: {code}{fix}");
    match error.as_service_error() {
        // Permanent: SES rejects this message. Anything else can be fixed on the sending side,
        // `MessageRejected` too: it is also SES's word for a sender that is not verified yet.
        Some(SendEmailError::BadRequestException(_)) => HandlerError::terminal(why),
        _ => HandlerError::retry(why),
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_sesv2::config::http::HttpResponse;
    use aws_sdk_sesv2::error::ErrorMetadata;
    use claimant::FailureKind;

    use super::*;

    fn order(address: &str, price: u64) -> Order {
        Order {
            order_id: "ord-1".into(),
            customer_email: address.into(),
            items: vec![Item { sku: "tea".into(), quantity: 2, unit_price_cents: price }],
            currency: "EUR".into(),
        }
    }

    #[test]
    fn the_mail_names_the_order_its_lines_and_its_key() {
        let message = render(&order("ada@example.com", 1_250), "ord-1").unwrap();
        let text = message.body().unwrap().text().unwrap().data();
        assert!(text.contains("2 x tea  25.00 EUR") && text.contains("Total: 25.00 EUR"), "{text}");
        assert_eq!(message.headers()[0].value(), "ord-1");
    }

    /// SES's text names the address, so the role's fault is told in words of this function.
    #[test]
    fn a_refusal_names_the_permission_and_no_address() {
        for (code, named) in [("AccessDeniedException", true), ("TooManyRequestsException", false)] {
            let meta = ErrorMetadata::builder().code(code).message("not on identity/ada@example.com").build();
            let response = HttpResponse::new(403.try_into().unwrap(), "{}".into());
            let error = failure(&SdkError::service_error(SendEmailError::generic(meta), response));
            let text = error.to_string();
            assert!(text.contains(code) && !text.contains("ada") && error.kind() == FailureKind::Retry, "{text}");
            assert_eq!(text.contains("ses:SendEmail on the identity and on its configuration set"), named, "{text}");
        }
    }

    #[test]
    fn a_mail_that_ses_does_not_name_is_not_sent() {
        for (id, sent) in [(Some("a"), true), (Some(""), false), (None, false)] {
            let answer = SendEmailOutput::builder().set_message_id(id.map(str::to_owned)).build();
            assert_eq!(confirmed(&answer).is_ok(), sent, "{id:?}");
        }
    }

    #[test]
    fn an_order_that_no_retry_fixes_is_rejected() {
        for (address, price) in [("ada", 1), ("ada@example.com\nBcc: x@y", 1), ("ada@example.com", u64::MAX)] {
            assert!(render(&order(address, price), "k").is_err());
        }
    }

    #[test]
    fn header_values_are_printable_and_bounded() {
        assert_eq!(header_value("ord-1\r\nä"), r"ord-1\u{d}\u{a}\u{e4}");
        assert_eq!(header_value(&"k".repeat(2_000)).len(), HEADER_VALUE_MAX_CHARS);
    }
}
