//! What services say for people.

use claimant_core::error::without_request;

/// Returns the first line of a service's message, without the request that it can quote: a refused signature is explained with all that was
/// signed, a session's token too.
#[must_use]
pub fn said(message: &str) -> &str {
    without_request(message.lines().next().unwrap_or_default()).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_is_not_said() {
        let refused = "The signature does not match. Consult the documentation.";
        for message in [
            refused.to_owned(),
            format!(
                "{refused}\n\nThe Canonical String for this request should have been\n'GET\nx-amz-security-token:t"
            ),
            format!("{refused} The Canonical String for this request should have been 'GET x-amz-security-token:t"),
        ] {
            assert_eq!(said(&message), refused);
        }
        assert_eq!(said(""), "");
    }
}
