//! What client and target agreed on, where the connections use TLS.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What client and target agreed on. It was read from a connection just before the trial; every session makes the same
/// offer, with a full handshake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tls {
    /// `TLS 1.3` or `TLS 1.2`.
    pub version: String,
    /// The cipher suite by its IANA name.
    pub cipher: String,
    /// The protocol inside (ALPN): `http/1.1`, `h2`; `null` if the target chose none.
    #[serde(default)]
    pub alpn: Option<String>,
    /// Whether the client verified the target's certificate.
    pub verified: bool,
    /// The name that the client sent (SNI), and that the certificate had to be for, where it was not that of the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sni: Option<String>,
}

impl fmt::Display for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.version, self.cipher)?;
        if let Some(alpn) = &self.alpn {
            write!(f, ", {alpn}")?;
        }
        if let Some(sni) = &self.sni {
            write!(f, ", as {sni}")?;
        }
        if !self.verified {
            f.write_str(", certificate not verified")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_in_a_line() {
        let tls = Tls {
            version: "TLS 1.3".to_owned(),
            cipher: "TLS_AES_256_GCM_SHA384".to_owned(),
            alpn: Some("h2".to_owned()),
            verified: true,
            sni: None,
        };
        assert_eq!(tls.to_string(), "TLS 1.3, TLS_AES_256_GCM_SHA384, h2");
        let other = Tls {
            alpn: None,
            verified: false,
            sni: Some("chat.example".to_owned()),
            ..tls
        };
        assert_eq!(
            other.to_string(),
            "TLS 1.3, TLS_AES_256_GCM_SHA384, as chat.example, certificate not verified"
        );
    }
}
