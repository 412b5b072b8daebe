//! One plain reason for each way in which TLS fails.

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// Why a connection failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Why {
    /// As the ledger lists it.
    pub(crate) reason: &'static str,
    /// Whether the target broke a rule of TLS. A certificate that nobody trusts breaks none, and neither does an alert.
    pub(crate) breaks_tls: bool,
}

impl Why {
    /// The handshake could not even begin. This is the client's own fault.
    pub(crate) const NOT_BEGUN: Self = Self::agreed_not("TLS: the client cannot begin a handshake");

    const fn agreed_not(reason: &'static str) -> Self {
        Self {
            reason,
            breaks_tls: false,
        }
    }

    const fn broken(reason: &'static str) -> Self {
        Self {
            reason,
            breaks_tls: true,
        }
    }

    pub(crate) fn of(error: &Error) -> Self {
        match error {
            Error::InvalidCertificate(error) => Self::agreed_not(certificate(error)),
            Error::AlertReceived(alert) => Self::agreed_not(of_alert(*alert)),
            Error::NoCertificatesPresented => Self::broken("TLS: the target shows no certificate"),
            Error::PeerIncompatible(_) => {
                Self::agreed_not("TLS: the target offers no version or cipher that the client has")
            }
            Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                Self::broken("TLS: the target answers with something that is not TLS")
            }
            Error::InvalidMessage(_) | Error::PeerSentOversizedRecord => {
                Self::broken("TLS: a message of the target is malformed")
            }
            Error::DecryptError => Self::broken("TLS: a message of the target does not decrypt"),
            Error::PeerMisbehaved(_)
            | Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. } => {
                Self::broken("TLS: the target breaks the protocol")
            }
            _ => Self::agreed_not("TLS: the connection failed"),
        }
    }
}

fn certificate(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::UnknownIssuer => {
            "TLS: the target's certificate is of a CA that is not trusted"
        }
        // A CA that was made anew under its old name.
        CertificateError::BadSignature => {
            "TLS: the target's certificate is not signed by the trusted CA of that name"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "TLS: the target's certificate is for another name"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "TLS: the target's certificate has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "TLS: the target's certificate is not valid yet"
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "TLS: the target's certificate is not one for a server"
        }
        _ => "TLS: the target's certificate is invalid",
    }
}

/// An alert by the name that the RFCs give it.
fn of_alert(alert: AlertDescription) -> &'static str {
    match alert {
        AlertDescription::CloseNotify => "TLS: the target closes in the handshake",
        AlertDescription::UnexpectedMessage => "TLS: alert unexpected_message of the target",
        AlertDescription::BadRecordMac => "TLS: alert bad_record_mac of the target",
        AlertDescription::RecordOverflow => "TLS: alert record_overflow of the target",
        AlertDescription::HandshakeFailure => "TLS: alert handshake_failure of the target",
        AlertDescription::BadCertificate => "TLS: alert bad_certificate of the target",
        AlertDescription::CertificateUnknown => "TLS: alert certificate_unknown of the target",
        AlertDescription::CertificateRequired => "TLS: alert certificate_required of the target",
        AlertDescription::IllegalParameter => "TLS: alert illegal_parameter of the target",
        AlertDescription::UnknownCA => "TLS: alert unknown_ca of the target",
        AlertDescription::AccessDenied => "TLS: alert access_denied of the target",
        AlertDescription::DecodeError => "TLS: alert decode_error of the target",
        AlertDescription::DecryptError => "TLS: alert decrypt_error of the target",
        AlertDescription::ProtocolVersion => "TLS: alert protocol_version of the target",
        AlertDescription::InsufficientSecurity => "TLS: alert insufficient_security of the target",
        AlertDescription::InternalError => "TLS: alert internal_error of the target",
        AlertDescription::UserCanceled => "TLS: alert user_canceled of the target",
        AlertDescription::MissingExtension => "TLS: alert missing_extension of the target",
        AlertDescription::UnsupportedExtension => "TLS: alert unsupported_extension of the target",
        AlertDescription::UnrecognisedName => "TLS: alert unrecognized_name of the target",
        AlertDescription::NoApplicationProtocol => {
            "TLS: alert no_application_protocol of the target"
        }
        _ => "TLS: another alert of the target",
    }
}
