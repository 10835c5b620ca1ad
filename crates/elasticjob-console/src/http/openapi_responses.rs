//! Marks the properties of responses as required: serde writes every property, as null if it has no value.
//!
//! utoipa derives optional properties from `Option`, which is right for requests only.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;
use utoipa::openapi::{OpenApi as Document, RefOr, Schema};

/// Properties that are absent from a response if they have no value, by schema.
const OPTIONAL: [(&str, &[&str]); 2] = [("JobSummary", &["hint"]), ("Problem", &["hint", "field"])];

/// Marks the properties of all schemas that no request uses.
pub(super) fn require_properties(document: &mut Document) {
    let requests = request_schemas(document);
    let Some(components) = &mut document.components else { return };
    for (name, schema) in &mut components.schemas {
        if !requests.contains(name) {
            let optional = OPTIONAL.iter().find(|(schema, _)| schema == name);
            require(schema, optional.map_or(&[], |(_, properties)| properties));
        }
    }
}

fn require(schema: &mut RefOr<Schema>, optional: &[&str]) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => {
            for name in object.properties.keys() {
                if !optional.contains(&name.as_str()) && !object.required.contains(name) {
                    object.required.push(name.clone());
                }
            }
        }
        Schema::AllOf(all) => all.items.iter_mut().for_each(|item| require(item, optional)),
        Schema::OneOf(one) => one.items.iter_mut().for_each(|item| require(item, optional)),
        _ => {}
    }
}

/// Names of the schemas that request bodies refer to, directly or through others.
fn request_schemas(document: &Document) -> BTreeSet<String> {
    let paths = to_value(&document.paths);
    let schemas: BTreeMap<String, Value> = document
        .components
        .iter()
        .flat_map(|components| &components.schemas)
        .map(|(name, schema)| (name.clone(), to_value(schema)))
        .collect();
    let operations = paths.as_object().into_iter().flat_map(|paths| paths.values());
    let operations = operations.filter_map(Value::as_object).flat_map(|item| item.values());
    let mut pending: Vec<&Value> =
        operations.filter_map(|operation| operation.get("requestBody")).collect();
    let mut found = BTreeSet::new();
    while let Some(value) = pending.pop() {
        match value {
            Value::Object(entries) => pending.extend(entries.values()),
            Value::Array(items) => pending.extend(items),
            Value::String(text) => {
                if let Some(name) = text.strip_prefix("#/components/schemas/")
                    && found.insert(name.to_owned())
                {
                    pending.extend(schemas.get(name));
                }
            }
            _ => {}
        }
    }
    found
}

fn to_value(part: &impl Serialize) -> Value {
    // A generated document always serializes.
    serde_json::to_value(part).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Document {
        let json = serde_json::json!({
            "openapi": "3.1.0",
            "info": { "title": "test", "version": "1" },
            "paths": { "/a": { "post": {
                "requestBody": { "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Request" } } } },
                "responses": {},
            } } },
            "components": { "schemas": {
                "Request": { "type": "object", "properties": { "part": { "$ref": "#/components/schemas/Part" } } },
                "Part": { "type": "object", "properties": { "a": { "type": "string" } } },
                "Answer": { "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": ["string", "null"] } } },
                "Problem": { "type": "object", "properties": { "code": { "type": "string" }, "hint": { "type": "string" } } },
                "Longer": { "allOf": [
                    { "$ref": "#/components/schemas/Answer" },
                    { "type": "object", "properties": { "c": { "type": "string" } } },
                ] },
            } },
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn properties_of_responses_are_required_and_those_of_requests_are_not() {
        let mut document = document();

        require_properties(&mut document);

        let document = to_value(&document);
        let schemas = &document["components"]["schemas"];
        assert_eq!(schemas["Answer"]["required"], serde_json::json!(["a", "b"]));
        assert_eq!(schemas["Longer"]["allOf"][1]["required"], serde_json::json!(["c"]));
        assert_eq!(schemas["Problem"]["required"], serde_json::json!(["code"]));
        assert_eq!(schemas["Request"]["required"], Value::Null);
        assert_eq!(schemas["Part"]["required"], Value::Null);
    }
}
