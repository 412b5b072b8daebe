//! JSON whose fields keep their order.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A JSON value whose fields keep the order in which they were written: a record that is read and written again is the
/// same text. (`serde_json::Value` sorts them, and its feature against that would do the same to messages on the wire.)
#[derive(Debug, Clone)]
pub enum Json {
    /// `null`.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number that is not negative.
    Whole(u64),
    /// A negative whole number.
    Negative(i64),
    /// Any other number.
    Real(f64),
    /// A text.
    Text(String),
    /// Values in a list.
    List(Vec<Json>),
    /// Values by name.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// A value as JSON. `None` if it is no JSON, such as a map whose keys are no texts.
    #[must_use]
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Option<Self> {
        serde_json::from_str(&serde_json::to_string(value).ok()?).ok()
    }

    /// The value as a type. `None` if it is not one of that type.
    #[must_use]
    pub fn typed<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(&self.to_string()).ok()
    }
}

/// Objects with the same fields are equal, in whichever order.
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Whole(a), Self::Whole(b)) => a == b,
            (Self::Negative(a), Self::Negative(b)) => a == b,
            (Self::Real(a), Self::Real(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Object(a), Self::Object(b)) => by_name(a) == by_name(b),
            _ => false,
        }
    }
}

fn by_name(fields: &[(String, Json)]) -> BTreeMap<&String, &Json> {
    fields.iter().map(|(name, value)| (name, value)).collect()
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Whole(value) => serializer.serialize_u64(*value),
            Self::Negative(value) => serializer.serialize_i64(*value),
            Self::Real(value) => serializer.serialize_f64(*value),
            Self::Text(value) => serializer.serialize_str(value),
            Self::List(values) => {
                let mut list = serializer.serialize_seq(Some(values.len()))?;
                for value in values {
                    list.serialize_element(value)?;
                }
                list.end()
            }
            Self::Object(fields) => {
                let mut object = serializer.serialize_map(Some(fields.len()))?;
                for (name, value) in fields {
                    object.serialize_entry(name, value)?;
                }
                object.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Whole(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(u64::try_from(value).map_or(Json::Negative(value), Json::Whole))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Real(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(Json::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Json, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = object.next_entry()? {
            fields.push(field);
        }
        Ok(Json::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_read_is_written_again_letter_by_letter() {
        let text = r#"{"z":[1,-2,0.1,5000.0,1e-7,18446744073709551615],"a":{"y":null,"b":true,"c":"“x”\n"}}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        assert_eq!(json.to_string(), text);
        assert_eq!(Json::of(&json), Some(json));
    }

    #[test]
    fn the_order_of_fields_makes_no_difference_to_what_an_object_is() {
        let [a, b, c] = [
            r#"{"a":1,"b":[2]}"#,
            r#"{"b":[2],"a":1}"#,
            r#"{"b":[2],"a":1.0}"#,
        ]
        .map(|text| serde_json::from_str::<Json>(text).unwrap());
        assert_eq!(a, b);
        assert_ne!(a, c);
    }

    #[test]
    fn a_value_is_of_one_type_and_not_of_another() {
        let json = Json::of(&[("a", 1.5)]).unwrap();
        assert_eq!(
            json.typed::<Vec<(String, f64)>>(),
            Some(vec![("a".to_owned(), 1.5)])
        );
        assert_eq!(json.typed::<Vec<u32>>(), None);
    }

    proptest! {
        #[test]
        fn a_number_comes_back_to_the_last_bit(value in any::<f64>().prop_filter("JSON has no others", |v| v.is_finite())) {
            let back: f64 = Json::of(&value).unwrap().typed().unwrap();
            prop_assert_eq!(back.to_bits(), value.to_bits());
        }
    }
}
