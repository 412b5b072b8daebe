//! Environment variables through which the command itself receives secrets. No process that it starts gets them.

/// All of them.
pub const SECRET_VARIABLES: [&str; 4] = [
    HEADERS_VARIABLE,
    TOKEN_SECRET_VARIABLE,
    TOKEN_VARIABLE,
    SERVE_TOKEN_VARIABLE,
];

/// Headers for the upgrade request, one `Name: value` per line.
pub const HEADERS_VARIABLE: &str = "PLIMSOLL_HEADERS";
/// The secret that signs tokens.
pub const TOKEN_SECRET_VARIABLE: &str = "PLIMSOLL_TOKEN_SECRET";
/// The bearer token of `plimsoll check --url`.
pub const TOKEN_VARIABLE: &str = "PLIMSOLL_TOKEN";
/// The token that the pages of `plimsoll serve` require.
pub const SERVE_TOKEN_VARIABLE: &str = "PLIMSOLL_SERVE_TOKEN";
