//! The environments that cases need. Cases with the same setup share one server and its companion.

use super::subject::Environment;

/// How the cases of a setup may share its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Several cases at a time.
    Together,
    /// One case after the other, because they set faults, fill limits or read counters.
    InTurn,
    /// A fresh server and companion for each case, because it ends them or takes long.
    Alone,
}

/// Names and values of environment variables.
pub type Variables = &'static [(&'static str, &'static str)];

/// Variables for a server and its companion.
#[derive(Debug)]
pub struct Setup {
    /// Cases with the same name of a setup share its server.
    pub name: &'static str,
    /// How they do.
    pub sharing: Sharing,
    /// Its cases last longer than those of others, together: so they begin first.
    pub lasts_long: bool,
    /// The server's variables.
    pub server: Variables,
    /// The companion's variables.
    pub companion: Variables,
}

impl Setup {
    /// A setup of this name without variables.
    #[must_use]
    pub const fn new(name: &'static str, sharing: Sharing) -> Self {
        Self {
            name,
            sharing,
            lasts_long: false,
            server: &[],
            companion: &[],
        }
    }

    /// The same with these variables of the server.
    #[must_use]
    pub const fn server(self, server: Variables) -> Self {
        Self { server, ..self }
    }

    /// The same with these variables of the companion.
    #[must_use]
    pub const fn companion(self, companion: Variables) -> Self {
        Self { companion, ..self }
    }

    /// The same, with cases that last longer than those of others.
    #[must_use]
    pub const fn lasting(self) -> Self {
        Self {
            lasts_long: true,
            ..self
        }
    }

    /// The server's variables, as it is started with them.
    #[must_use]
    pub fn server_environment(&self) -> Environment {
        owned(self.server)
    }

    /// The companion's variables, as it is started with them.
    #[must_use]
    pub fn companion_environment(&self) -> Environment {
        owned(self.companion)
    }

    /// The variables that make this setup special, for texts.
    #[must_use]
    pub fn variables(&self) -> String {
        let list: Vec<String> = self
            .server
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        list.join(" ")
    }

    /// The value of a numeric variable of the server, or the contract's default.
    #[must_use]
    pub fn number(&self, name: &str, default: u32) -> u32 {
        number(self.server, name).unwrap_or(default)
    }

    /// The value of a numeric variable of the companion, if the setup has it.
    #[must_use]
    pub fn companion_number(&self, name: &str) -> Option<u32> {
        number(self.companion, name)
    }
}

fn owned(variables: Variables) -> Environment {
    variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn number(variables: Variables, name: &str) -> Option<u32> {
    let (_, value) = variables.iter().find(|(known, _)| *known == name)?;
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setup_gives_its_variables_to_both_processes() {
        let setup = Setup::new("two", Sharing::InTurn)
            .server(&[("MAX_SESSIONS", "2"), ("POLICY", "close")])
            .companion(&[("DELAY_MS", "60")]);
        assert_eq!(setup.server_environment()["MAX_SESSIONS"], "2");
        assert_eq!(setup.companion_environment()["DELAY_MS"], "60");
        assert_eq!(setup.number("MAX_SESSIONS", 1000), 2);
        assert_eq!(setup.number("DELAY_MS", 4), 4, "the companion's");
        assert_eq!(setup.companion_number("DELAY_MS"), Some(60));
        assert_eq!(setup.variables(), "MAX_SESSIONS=2 POLICY=close");
    }
}
