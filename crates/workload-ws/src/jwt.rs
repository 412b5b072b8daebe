//! JSON Web Tokens signed with HMAC-SHA-256 (RFC 7519, RFC 7515): the one kind that a `wse` server takes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use hmac::{Hmac, KeyInit as _, Mac as _};
use plimsoll_core::secret::Secret;
use serde::Serialize;
use sha2::Sha256;

const HEADER: &[u8] = br#"{"alg":"HS256","typ":"JWT"}"#;

/// How long a token is good for: longer than any trial.
const LIFETIME_S: u64 = 3600;

/// Who asks, as the server checks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The secret that both sides know, at least 32 bytes.
    pub secret: Secret,
    /// Claim `iss`.
    pub issuer: String,
    /// Claim `aud`.
    pub audience: String,
    /// Claim `sub`: the user. All connections of a trial are one user's.
    pub subject: String,
}

impl Default for Credentials {
    /// Those of a test server. They protect nothing.
    fn default() -> Self {
        Self {
            secret: Secret::new("bench-secret-key-for-testing-only"),
            issuer: "wse-bench".to_owned(),
            audience: "wse-bench".to_owned(),
            subject: "bench-user".to_owned(),
        }
    }
}

#[derive(Serialize)]
struct Claims<'a> {
    sub: &'a str,
    iss: &'a str,
    aud: &'a str,
    iat: u64,
    exp: u64,
}

impl Credentials {
    /// A token issued at `issued_at_s`, in seconds since 1970, and good for an hour.
    #[must_use]
    pub fn token(&self, issued_at_s: u64) -> String {
        let claims = serde_json::to_vec(&Claims {
            sub: &self.subject,
            iss: &self.issuer,
            aud: &self.audience,
            iat: issued_at_s,
            exp: issued_at_s + LIFETIME_S,
        })
        .unwrap_or_else(|_| unreachable!("texts and numbers are JSON"));
        signed(HEADER, &claims, self.secret.expose().as_bytes())
    }
}

/// The compact form of a signed token: header, payload and signature in base64url, with dots between.
fn signed(header: &[u8], payload: &[u8], secret: &[u8]) -> String {
    let mut token = BASE64URL.encode(header);
    token.push('.');
    BASE64URL.encode_string(payload, &mut token);
    let mut mac = Hmac::<Sha256>::new_from_slice(secret)
        .unwrap_or_else(|_| unreachable!("HMAC takes a key of any length"));
    mac.update(token.as_bytes());
    let signature = mac.finalize().into_bytes();
    token.push('.');
    BASE64URL.encode_string(signature, &mut token);
    token
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_7515_appendix_a_1() {
        let header = b"{\"typ\":\"JWT\",\r\n \"alg\":\"HS256\"}";
        let payload =
            b"{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}";
        let secret = BASE64URL
            .decode("AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow")
            .unwrap();
        assert_eq!(
            signed(header, payload, &secret),
            "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9\
             .eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ\
             .dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        );
    }

    #[test]
    fn the_claims_are_those_that_the_server_checks() {
        let token = Credentials::default().token(1_700_000_000);
        let claims = token.split('.').nth(1).unwrap();
        let claims = BASE64URL.decode(claims).unwrap();
        assert_eq!(
            std::str::from_utf8(&claims).unwrap(),
            r#"{"sub":"bench-user","iss":"wse-bench","aud":"wse-bench","iat":1700000000,"exp":1700003600}"#
        );
        assert!(Credentials::default().secret.expose().len() >= 32);
    }
}
