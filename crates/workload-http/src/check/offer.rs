//! What a target has: its routes, the sizes of `/bytes`, its protocols. A case that does not apply is not in the list.

/// A route of the contract. `GET /` and `GET /healthz` are everybody's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// `GET /`.
    Root,
    /// `GET /bytes/N`.
    Bytes,
    /// `POST /sum`.
    Sum,
    /// `GET /json/K`.
    Json,
}

impl Route {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Root, Self::Bytes, Self::Sum, Self::Json];

    /// Its name in manifests.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Bytes => "bytes",
            Self::Sum => "sum",
            Self::Json => "json",
        }
    }

    /// The route of that name, if there is one.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|route| route.name() == name)
    }
}

/// What clients speak.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    H1,
    /// HTTP/2 without TLS, with prior knowledge.
    H2c,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::H1, Self::H2c];

    /// Its name in manifests.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::H1 => "h1",
            Self::H2c => "h2c",
        }
    }

    /// The protocol of that name, if there is one.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|protocol| protocol.name() == name)
    }
}

/// Which sizes `/bytes` has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sizes {
    /// Each from 1 to [`LARGEST`].
    All,
    /// These of [`FILES`]: a finished program serves them as files.
    Files(Vec<usize>),
}

/// The largest answer of `/bytes`.
pub const LARGEST: usize = 1024 * 1024;

/// The sizes of a finished program, if its manifest names no others.
pub const FILES: [usize; 5] = [64, 1024, 16_384, 65_536, LARGEST];

impl Sizes {
    /// Sizes to try: the least, the largest, and some between.
    pub(super) fn sample(&self) -> &[usize] {
        match self {
            Self::All => &[1, 2, 15, 16, 17, 65_536, LARGEST],
            Self::Files(files) => files,
        }
    }

    /// Whether this is one of them.
    #[must_use]
    pub fn has(&self, bytes: usize) -> bool {
        match self {
            Self::All => (1..=LARGEST).contains(&bytes),
            Self::Files(files) => files.contains(&bytes),
        }
    }
}

/// What a target has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Its routes, besides `GET /` and `GET /healthz`.
    pub routes: Vec<Route>,
    /// The sizes of `/bytes`.
    pub sizes: Sizes,
    /// What it speaks.
    pub protocols: Vec<Protocol>,
    /// Whether h2c has a port of its own.
    pub h2_port: bool,
    /// Whether it has `/metrics` with the metrics of the contract.
    pub metrics: bool,
}

impl Default for Offer {
    fn default() -> Self {
        Self {
            routes: Route::ALL.to_vec(),
            sizes: Sizes::All,
            protocols: vec![Protocol::H1],
            h2_port: false,
            metrics: true,
        }
    }
}

impl Offer {
    /// What a finished program has that is only configured.
    #[must_use]
    pub fn of_infrastructure() -> Self {
        Self {
            routes: vec![Route::Root, Route::Bytes],
            sizes: Sizes::Files(FILES.to_vec()),
            metrics: false,
            ..Self::default()
        }
    }

    /// Whether it has `/bytes` in this size.
    #[must_use]
    pub fn has_bytes(&self, bytes: usize) -> bool {
        self.has(Route::Bytes) && self.sizes.has(bytes)
    }

    /// Whether it has this route.
    #[must_use]
    pub fn has(&self, route: Route) -> bool {
        self.routes.contains(&route)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for route in Route::ALL {
            assert_eq!(Route::by_name(route.name()), Some(route));
        }
        for protocol in Protocol::ALL {
            assert_eq!(Protocol::by_name(protocol.name()), Some(protocol));
        }
        assert_eq!(
            (Route::by_name("h1"), Protocol::by_name("h3")),
            (None, None)
        );
    }
}
