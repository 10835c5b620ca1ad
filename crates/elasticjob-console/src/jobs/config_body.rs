//! A configuration as a client sends it: a JSON object with the keys of [`Property`], which it is parsed by and described from.

use std::{
    borrow::Cow,
    collections::{BTreeMap, btree_map::Entry},
    fmt,
    sync::LazyLock,
};

use elasticjob::{
    job::{InvalidValue, Job, Property, PropertyKind, Props, restore_masked},
    problem,
};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{
            AdditionalProperties, ArrayBuilder, KnownFormat, ObjectBuilder, SchemaFormat,
            SchemaType, Type,
        },
    },
};

use super::config::Base;
use crate::http::problem::Problem;

/// The sent properties by their key; `None` for `null`, which unsets one.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfigBody(BTreeMap<&'static str, Option<PropertyValue>>);

/// A property as it was sent.
#[derive(Debug, Clone)]
enum PropertyValue {
    /// A text, or a flag or number as text.
    Text(String),
    List(Vec<String>),
    Map(BTreeMap<String, Option<String>>),
    /// Configuration of other programs; never changed, whatever is sent.
    Foreign,
}

impl ConfigBody {
    pub(crate) fn job_name(&self) -> Option<&str> {
        let name = Property::all().iter().find(|row| row.kind() == PropertyKind::Name)?;
        match self.0.get(name.key) {
            Some(Some(PropertyValue::Text(name))) => Some(name),
            _ => None,
        }
    }

    /// Applies the sent properties to `job`; masked secrets are taken from `stored`.
    pub(super) fn apply_to(
        mut self,
        mut job: Job,
        base: Base,
        stored: Option<&Job>,
    ) -> Result<Job, Problem> {
        for property in Property::all() {
            let Some(value) = self.0.remove(property.key) else { continue };
            let refused = |error| invalid_value(property.key, error);
            match value {
                Some(PropertyValue::Text(name)) if property.kind() == PropertyKind::Name => {
                    check_name(property.key, &name, &job)?;
                }
                Some(PropertyValue::Text(text)) if !text.is_empty() => {
                    let text = restore_masked(stored, property.key, text).map_err(refused)?;
                    job.set(property.key, &text).map_err(refused)?;
                }
                Some(PropertyValue::List(texts)) => {
                    job.set_list(property.key, texts).map_err(refused)?;
                }
                Some(PropertyValue::Map(props)) => {
                    let initial = if base == Base::Merged { job.props } else { Props::new() };
                    job.props = restore_secrets(props, initial, stored)?;
                }
                Some(PropertyValue::Foreign) => {}
                Some(PropertyValue::Text(_)) | None => job.unset(property),
            }
        }
        Ok(job)
    }
}

fn check_name(key: &str, name: &str, job: &Job) -> Result<(), Problem> {
    if name == job.name.as_str() {
        return Ok(());
    }
    let problem = format!("{name:?} differs from the job of the path, {}", job.name);
    Err(Problem::invalid(key, problem).with_hint("a job cannot be renamed"))
}

/// The error of a value, at its field and with its hint.
fn invalid_value(field: &str, error: InvalidValue) -> Problem {
    let InvalidValue { problem, hint, .. } = error;
    let problem = problem::Problem { message: problem, hint: hint.map(String::from) };
    Problem::invalid(field, problem.at(field))
}

/// Applies sent props: `null` removes one, and a masked value stands for the stored one.
fn restore_secrets(
    sent: BTreeMap<String, Option<String>>,
    mut props: Props,
    stored: Option<&Job>,
) -> Result<Props, Problem> {
    for (key, value) in sent {
        let Some(value) = value else {
            props.remove(&key);
            continue;
        };
        let field = format!("props.{key}");
        let value =
            restore_masked(stored, &field, value).map_err(|error| invalid_value(&field, error))?;
        props.set(key, value).map_err(|error| invalid_value(&field, error))?;
    }
    Ok(props)
}

impl<'de> Deserialize<'de> for ConfigBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(BodyVisitor)
    }
}

struct BodyVisitor;

impl<'de> Visitor<'de> for BodyVisitor {
    type Value = ConfigBody;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a configuration")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ConfigBody, A::Error> {
        let mut sent = BTreeMap::new();
        while let Some(PropertyKey(property)) = map.next_key()? {
            let Entry::Vacant(entry) = sent.entry(property.key) else {
                return Err(A::Error::duplicate_field(property.key));
            };
            entry.insert(next_value(&mut map, property.kind())?);
        }
        Ok(ConfigBody(sent))
    }
}

fn next_value<'de, A: MapAccess<'de>>(
    map: &mut A,
    kind: PropertyKind,
) -> Result<Option<PropertyValue>, A::Error> {
    Ok(match kind {
        PropertyKind::Name | PropertyKind::Text | PropertyKind::TypeName => {
            map.next_value::<Option<String>>()?.map(PropertyValue::Text)
        }
        PropertyKind::Flag => as_text(map.next_value::<Option<bool>>()?),
        PropertyKind::Number => as_text(map.next_value::<Option<i32>>()?),
        PropertyKind::Count => as_text(map.next_value::<Option<u32>>()?),
        PropertyKind::List => map.next_value::<Option<Vec<String>>>()?.map(PropertyValue::List),
        PropertyKind::Map => map.next_value::<Option<_>>()?.map(PropertyValue::Map),
        PropertyKind::Foreign => map.next_value::<Option<Value>>()?.map(|_| PropertyValue::Foreign),
    })
}

fn as_text<T: ToString>(value: Option<T>) -> Option<PropertyValue> {
    value.map(|value| PropertyValue::Text(value.to_string()))
}

struct PropertyKey(&'static Property);

impl<'de> Deserialize<'de> for PropertyKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_identifier(KeyVisitor)
    }
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = PropertyKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("field identifier")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<PropertyKey, E> {
        static KEYS: LazyLock<Vec<&str>> =
            LazyLock::new(|| Property::all().iter().flat_map(Property::keys).collect());
        Property::find(key).map(PropertyKey).ok_or_else(|| E::unknown_field(key, &KEYS))
    }
}

impl PartialSchema for ConfigBody {
    fn schema() -> RefOr<Schema> {
        let object = ObjectBuilder::new()
            .description(Some(
                "A configuration under Java ElasticJob's names. `null` unsets a property.",
            ))
            .additional_properties(Some(AdditionalProperties::FreeForm(false)));
        let properties = Property::all().iter();
        let object = properties.fold(object, |object, property| {
            object.property(property.key, property_schema(property.kind()))
        });
        object.into()
    }
}

impl ToSchema for ConfigBody {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("ConfigProperties")
    }
}

fn property_schema(kind: PropertyKind) -> RefOr<Schema> {
    let or_null = |kind: Type| SchemaType::from_iter([kind, Type::Null]);
    let nullable =
        |kind: Type| ObjectBuilder::new().schema_type(or_null(kind)).default(Some(Value::Null));
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let int32 = Some(SchemaFormat::KnownFormat(KnownFormat::Int32));
    match kind {
        PropertyKind::Name => nullable(Type::String)
            .description(Some("Must equal the name in the path, if present."))
            .into(),
        PropertyKind::Text | PropertyKind::TypeName => nullable(Type::String).into(),
        PropertyKind::Flag => nullable(Type::Boolean).into(),
        PropertyKind::Number => nullable(Type::Integer).format(int32).into(),
        PropertyKind::Count => nullable(Type::Integer).format(int32).minimum(Some(0)).into(),
        PropertyKind::List => ArrayBuilder::new()
            .schema_type(or_null(Type::Array))
            .default(Some(Value::Null))
            .items(text())
            .into(),
        PropertyKind::Map => nullable(Type::Object)
            .property_names(Some(text()))
            .additional_properties(Some(text()))
            .into(),
        PropertyKind::Foreign => ObjectBuilder::new()
            .schema_type(SchemaType::any())
            .description(Some("Configuration of other programs; never changed, whatever is sent."))
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::{extract::parse_body, problem::Code};

    #[test]
    fn refused_body_names_the_field_and_what_is_expected() {
        for (body, field, detail) in [
            (r#"{"cron":5}"#, Some("cron"), "invalid type: integer `5`, expected a string"),
            (r#"{"failover":"yes"}"#, Some("failover"), "expected a boolean"),
            (r#"{"maxTimeDiffSeconds":4294967295}"#, Some("maxTimeDiffSeconds"), "expected i32"),
            (r#"{"shardingTotalCount":-1}"#, Some("shardingTotalCount"), "expected u32"),
            (r#"{"jobListenerTypes":[1]}"#, Some("jobListenerTypes[0]"), "expected a string"),
            (r#"{"props":{"a":5}}"#, Some("props.a"), "expected a string"),
            (
                r#"{"colour":1}"#,
                Some("colour"),
                "unknown field `colour`, expected one of `jobName`",
            ),
            (r#"{"cron":null,"cron":null}"#, None, "duplicate field `cron`"),
            (
                r#"{"jobExecutorServiceHandlerType":"X","jobExecutorThreadPoolSizeProviderType":"Y"}"#,
                None,
                "duplicate field `jobExecutorThreadPoolSizeProviderType`",
            ),
        ] {
            let problem = parse_body::<ConfigBody>(body.as_bytes()).unwrap_err();

            assert_eq!((problem.code, problem.field.as_deref()), (Code::Invalid, field), "{body}");
            assert!(problem.detail.contains(detail), "{}", problem.detail);
        }
    }

    #[test]
    fn refused_value_keeps_the_hint_of_its_error() {
        let job = Job::named("settle").unwrap();
        for (body, field, hint) in [
            (json!({ "cron": "0 0 24 * * ?" }), "cron", "hours are 0 to 23"),
            (json!({ "timeZone": "Mars/Olympus" }), "timeZone", "Asia/Shanghai"),
        ] {
            let sent: ConfigBody = serde_json::from_value(body).unwrap();
            let problem = sent.apply_to(job.clone(), Base::Merged, None).unwrap_err();

            assert_eq!(problem.field.as_deref(), Some(field));
            let given = problem.hint.as_deref().unwrap_or_default();
            assert!(given.contains(hint), "{given:?} instead of {hint:?}");
            assert!(problem.detail.starts_with(&format!("{field}: ")), "{}", problem.detail);
        }
    }

    #[test]
    fn null_and_empty_text_unset_a_property() {
        let mut fresh = Job::named("settle").unwrap();
        let full = include_str!("../../../elasticjob/tests/golden/job.yaml");
        let stored = Job::read(&fresh.name, full.as_bytes()).unwrap();
        let nulls: serde_json::Map<_, _> =
            Property::all().iter().map(|row| (row.key.to_owned(), Value::Null)).collect();
        let sent: ConfigBody = serde_json::from_value(nulls.into()).unwrap();

        let job = sent.apply_to(stored.clone(), Base::Merged, Some(&stored)).unwrap();

        fresh.foreign_config = stored.foreign_config.clone();
        assert_eq!(job, fresh);
        let sent: ConfigBody = serde_json::from_value(json!({ "cron": "", "label": "" })).unwrap();
        let job = sent.apply_to(stored.clone(), Base::Merged, Some(&stored)).unwrap();
        assert_eq!((job.cron, job.label), (None, None));
    }

    #[test]
    fn schema_describes_every_property_by_its_kind() {
        let schema = serde_json::to_value(ConfigBody::schema()).unwrap();

        let described = schema["properties"].as_object().unwrap();
        assert_eq!(described.len(), Property::all().len());
        assert_eq!(schema["additionalProperties"], false);
        for (key, expected) in [
            ("cron", json!({ "type": ["string", "null"], "default": null })),
            ("failover", json!({ "type": ["boolean", "null"], "default": null })),
            (
                "maxTimeDiffSeconds",
                json!({ "type": ["integer", "null"], "format": "int32", "default": null }),
            ),
            (
                "shardingTotalCount",
                json!({ "type": ["integer", "null"], "format": "int32", "minimum": 0, "default": null }),
            ),
            (
                "jobListenerTypes",
                json!({ "type": ["array", "null"], "items": { "type": "string" }, "default": null }),
            ),
            (
                "props",
                json!({
                    "type": ["object", "null"],
                    "additionalProperties": { "type": "string" },
                    "propertyNames": { "type": "string" },
                    "default": null,
                }),
            ),
        ] {
            assert_eq!(described[key], expected, "{key}");
        }
    }
}
