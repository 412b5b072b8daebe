//! The JSON Schema of the records, generated from their types and checked in under `schema/`.
//!
//! It describes what Plimsoll writes: every field is present, and an unknown value is `null`.

use plimsoll_core::record::{
    Bracket, Calibration, ClientCosts, Comparison, FleetCalibration, InferenceCalibration, Live,
    Ranking, SearchPlan, Trial,
};
use plimsoll_document::Tellers;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use crate::check::Check;

/// The file name under `schema/` and the text of every schema.
#[must_use]
pub fn all(tellers: Tellers) -> Vec<(&'static str, String)> {
    vec![
        ("bracket.json", schema_of::<Bracket>()),
        ("calibration.json", schema_of::<Calibration>()),
        ("calibration-ws.json", schema_of::<ClientCosts>()),
        ("check.json", schema_of::<Check>()),
        ("comparison.json", schema_of::<Comparison>()),
        ("fleet.json", schema_of::<FleetCalibration>()),
        ("inference.json", schema_of::<InferenceCalibration>()),
        ("live.json", schema_of::<Live>()),
        ("ranking.json", schema_of::<Ranking>()),
        ("search.json", schema_of::<SearchPlan>()),
        ("trial.json", of_trial(tellers)),
    ]
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
}

fn schema_of<T: JsonSchema>() -> String {
    text_of(&generator().into_root_schema_for::<T>())
}

/// The schema of a trial, with what workloads add to it.
fn of_trial(tellers: Tellers) -> String {
    let mut generator = generator();
    let added = tellers.schemas(&mut generator);
    let mut schema = generator.into_root_schema_for::<Trial>();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    if let Some(properties) = properties {
        let added = added.into_iter();
        properties.extend(added.map(|(name, section)| (name.to_owned(), section.to_value())));
    }
    text_of(&schema)
}

fn text_of(schema: &Schema) -> String {
    let mut text = serde_json::to_string_pretty(schema)
        .unwrap_or_else(|error| unreachable!("a schema is plain JSON: {error}"));
    text.push('\n');
    text
}
