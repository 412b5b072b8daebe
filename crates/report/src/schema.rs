//! The JSON Schema of the records, generated from their types and checked in under `schema/`.
//!
//! It describes what Plimsoll writes: every field is present, and an unknown value is `null`.

use plimsoll_core::record::{
    Bracket, Calibration, Comparison, Live, Ranking, SearchPlan, Trial, WsCalibration,
};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

use crate::check::Check;

/// The file name under `schema/` and the text of every schema.
#[must_use]
pub fn all() -> Vec<(&'static str, String)> {
    vec![
        ("bracket.json", schema_of::<Bracket>()),
        ("calibration.json", schema_of::<Calibration>()),
        ("calibration-ws.json", schema_of::<WsCalibration>()),
        ("check.json", schema_of::<Check>()),
        ("comparison.json", schema_of::<Comparison>()),
        ("live.json", schema_of::<Live>()),
        ("ranking.json", schema_of::<Ranking>()),
        ("search.json", schema_of::<SearchPlan>()),
        ("trial.json", schema_of::<Trial>()),
    ]
}

fn schema_of<T: JsonSchema>() -> String {
    let generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator();
    let schema = generator.into_root_schema_for::<T>();
    let mut text = serde_json::to_string_pretty(&schema)
        .unwrap_or_else(|error| unreachable!("a schema is plain JSON: {error}"));
    text.push('\n');
    text
}
