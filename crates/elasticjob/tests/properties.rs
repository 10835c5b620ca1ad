//! Holds what is written by hand equal to the table of job properties: the configuration page, and the keys of `#[elasticjob::job]`.

use std::{collections::BTreeSet, fs, path::Path};

use elasticjob::job::{Bound, Missing, Property, PropertyKind};

/// Keys of the attribute that are no property of their own: entries of `props`, and settings of the program.
const OTHER_KEYS: [&str; 9] = [
    "dst",
    "timeout",
    "retry_max_attempts",
    "retry_backoff",
    "catch_up",
    "on_lease_loss",
    "handler",
    "java_class",
    "blocking",
];

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The property's row on the configuration page.
fn row(property: &Property) -> String {
    let code = |text: &str| format!("`{text}`");
    let default = match (property.kind(), property.default) {
        (PropertyKind::Name, _) => "–".to_owned(),
        (_, None) => "none".to_owned(),
        (_, Some("")) => code("''"),
        (PropertyKind::TypeName, Some(name)) => code(name),
        (_, Some(value)) => value.to_owned(),
    };
    let missing = match property.missing {
        Missing::Error => "error".to_owned(),
        Missing::Is(value) => format!("**{value}**"),
        Missing::Default => default.clone(),
    };
    let builder = property.builder.map_or("–".to_owned(), code);
    let (key, description) = (code(property.key), property.description);
    format!("| {key} | {builder} | {default} | {missing} | {description} |")
}

#[test]
fn configuration_page_lists_every_property() {
    let page = read("docs/configuration.md");
    let (_, section) = page.split_once("\n## Properties\n").unwrap();
    let written: Vec<&str> = section
        .lines()
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .collect();

    let expected: Vec<String> = Property::all().iter().map(row).collect();

    assert_eq!(written, expected, "write these rows:\n{}", expected.join("\n"));
}

#[test]
fn configuration_page_lists_every_bound() {
    let page = read("docs/configuration.md");
    let (_, section) = page.split_once("\n## Bounds\n").unwrap();
    let written: Vec<&str> = section
        .lines()
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .collect();

    let bounded = Property::all().iter().filter(|property| property.bound != Bound::Document);
    let row = |property: &Property| format!("| `{}` | {} |", property.key, property.bound);
    let expected: Vec<String> = bounded.map(row).collect();

    assert_eq!(written, expected, "write these rows:\n{}", expected.join("\n"));
}

/// Every key that the attribute should have.
fn attribute_keys() -> BTreeSet<String> {
    let properties = Property::all().iter().filter_map(|property| property.attribute);
    properties.chain(OTHER_KEYS).map(ToOwned::to_owned).collect()
}

#[test]
fn attribute_has_a_key_for_every_property() {
    let errors = read("crates/elasticjob-macros/tests/ui/keys.stderr");
    let listed = errors.lines().find_map(|line| line.split_once("the keys are ")).unwrap().1;

    assert_eq!(
        listed.split(", ").map(ToOwned::to_owned).collect::<BTreeSet<_>>(),
        attribute_keys()
    );
}

/// The macro suggests its key to a person who writes Java's.
#[test]
fn attribute_knows_the_java_key_of_every_property() {
    let source = read("crates/elasticjob-macros/src/keys.rs");
    let source: String = source.split_whitespace().collect();
    let source = source.replace("java_name:", "").replace("name:", "");

    for property in Property::all() {
        if let Some(attribute) = property.attribute {
            let pair = format!("\"{attribute}\",\"{}\",", property.key);
            assert!(source.contains(&pair), "{attribute} is {} in Java", property.key);
        }
    }
}

#[test]
fn attribute_documents_every_key() {
    let source = read("crates/elasticjob/src/lib.rs");
    let rows = source.lines().filter_map(|line| line.strip_prefix("/// | `"));
    let documented: BTreeSet<String> = rows
        .filter_map(|row| row.split_once(" | "))
        .flat_map(|(keys, _)| keys.split(", ").map(|key| key.trim_matches('`').to_owned()))
        .collect();

    assert_eq!(documented, attribute_keys());
}
