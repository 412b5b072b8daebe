//! Who we are to a broker that wants to know.

use std::fmt;

use plimsoll_workload::Refusal;

/// A user and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user's name.
    pub user: String,
    /// The password. No text shows it.
    pub password: String,
}

impl Login {
    /// Reads `USER:PASSWORD`.
    ///
    /// # Errors
    /// One line with the remedy.
    pub(crate) fn parse(text: &str) -> Result<Self, Refusal> {
        let parts = text.split_once(':');
        let (user, password) =
            parts.ok_or_else(|| Refusal::new("--login-password: write USER:PASSWORD"))?;
        Ok(Self {
            user: user.to_owned(),
            password: password.to_owned(),
        })
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_in_no_text() {
        let login = Login {
            user: "anna".to_owned(),
            password: "hidden".to_owned(),
        };
        assert_eq!(format!("{login:?}"), r#"Login { user: "anna", .. }"#);
    }
}
