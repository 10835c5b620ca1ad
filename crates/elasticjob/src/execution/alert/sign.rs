//! Signs requests to a DingTalk robot.

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use ring::hmac;

/// The webhook URL with the current time and a signature made with the robot's secret. The robot accepts the signature for one hour.
pub(super) fn signed_url(webhook: &str, secret: &str, now: Timestamp) -> String {
    let millis = now.as_millisecond();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let signature = STANDARD.encode(hmac::sign(&key, format!("{millis}\n{secret}").as_bytes()));
    let signature = utf8_percent_encode(&signature, NON_ALPHANUMERIC);
    let next = if webhook.contains('?') { '&' } else { '?' };
    format!("{webhook}{next}timestamp={millis}&sign={signature}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with Python's hmac, base64 and urllib.
    #[test]
    fn signature_matches_dingtalk() {
        let now = Timestamp::from_millisecond(1_774_749_600_000).unwrap();

        let url =
            signed_url("https://oapi.dingtalk.com/robot/send?access_token=42", "SEC000this", now);

        assert_eq!(
            url,
            "https://oapi.dingtalk.com/robot/send?access_token=42&timestamp=1774749600000&sign=riDX2AYwrbokMJdjUVaB9Y59yDNmkff4JXrfTlPZk7M%3D"
        );
    }
}
