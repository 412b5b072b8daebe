//! What workloads add to the record of a trial.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::json::Json;

/// What workloads add to the record of a trial: objects by name, beside the fields that every trial has. A workload owns
/// its names and knows their types. An object that nobody here knows is kept as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sections(BTreeMap<String, Json>);

impl Sections {
    /// One section.
    #[must_use]
    pub fn of<T: Serialize + ?Sized>(name: &str, section: &T) -> Self {
        let mut sections = Self::default();
        sections.set(name, section);
        sections
    }

    /// Adds a section, or replaces the one of that name. What is no JSON object is no section: that name then has none.
    pub fn set<T: Serialize + ?Sized>(&mut self, name: &str, section: &T) {
        match Json::of(section) {
            Some(object @ Json::Object(_)) => self.0.insert(name.to_owned(), object),
            _ => self.0.remove(name),
        };
    }

    /// A section as its workload knows it. `None` if there is none of that name, or if it is of another type.
    #[must_use]
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.0.get(name)?.typed()
    }

    /// Every section as it is, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0
            .iter()
            .map(|(name, section)| (name.as_str(), section))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Sections {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(&self.0)
    }
}

impl<'de> Deserialize<'de> for Sections {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Objects)
    }
}

/// Takes the objects among the fields that a trial does not have. Another field may be of a later Plimsoll: it is passed
/// over, as it always was.
struct Objects;

impl<'de> Visitor<'de> for Objects {
    type Value = Sections;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fields by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Sections, A::Error> {
        let mut sections = BTreeMap::new();
        while let Some((name, value)) = fields.next_entry()? {
            if matches!(value, Json::Object(_)) {
                sections.insert(name, value);
            }
        }
        Ok(Sections(sections))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Own {
        zeal: f64,
        amount: u64,
    }

    /// A record as a trial is one: its own fields, and a workload's among them.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Record {
        before: u32,
        #[serde(flatten)]
        sections: Sections,
        after: Option<String>,
    }

    const TEXT: &str = r#"{"before":1,"own":{"zeal":0.5,"amount":7},"after":null}"#;

    #[test]
    fn a_section_is_a_field_of_the_record_in_its_place_and_in_its_order() {
        let sections = Sections::of(
            "own",
            &Own {
                zeal: 0.5,
                amount: 7,
            },
        );
        let record = Record {
            before: 1,
            sections,
            after: None,
        };
        assert_eq!(serde_json::to_string(&record).unwrap(), TEXT);
        let back: Record = serde_json::from_str(TEXT).unwrap();
        assert_eq!(back, record);
        assert_eq!(
            back.sections.get("own"),
            Some(Own {
                zeal: 0.5,
                amount: 7
            })
        );
        assert_eq!(back.sections.get::<Vec<u32>>("own"), None);
        assert_eq!(back.sections.get::<Own>("another"), None);
    }

    #[test]
    fn an_unknown_object_is_kept_and_another_unknown_field_breaks_nothing() {
        let text = r#"{"new":3,"list":[{}],"none":null,"object":{"b":1,"a":2},"before":1}"#;
        let record: Record = serde_json::from_str(text).unwrap();
        let names: Vec<&str> = record.sections.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["object"]);
        let told = serde_json::to_string(&record).unwrap();
        assert_eq!(told, r#"{"before":1,"object":{"b":1,"a":2},"after":null}"#);
    }

    #[test]
    fn what_is_no_object_is_no_section() {
        let mut sections = Sections::of(
            "own",
            &Own {
                zeal: 0.5,
                amount: 7,
            },
        );
        sections.set("own", &None::<Own>);
        assert!(sections.is_empty());
    }
}
