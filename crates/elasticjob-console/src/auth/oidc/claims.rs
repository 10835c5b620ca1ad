//! Who a token speaks of, and what they may. Pure.

use serde_json::Value;

use super::{settings::Settings, token::Claims};
use crate::auth::accounts::Roles;

/// What no account's name begins with.
const PREFIX: &str = "oidc:";
/// How long a name may be.
const LONGEST: usize = 128;

/// Their name here, or why it cannot be one.
pub(super) fn username(claims: &Claims, settings: &Settings) -> Result<String, String> {
    let claim = &settings.username_claim;
    let hint = "hint: oidc.usernameClaim names another, oidc.scopes asks for more";
    let name = found(claims, claim).and_then(Value::as_str).unwrap_or_default();
    if name.is_empty() {
        return Err(format!("the provider does not say {claim:?}; {hint}"));
    }
    if name.chars().count() > LONGEST || name.chars().any(char::is_control) {
        return Err(format!("what the provider says in {claim:?} cannot be a name; {hint}"));
    }
    // Anybody could say that they have somebody else's address.
    if claim == "email" && !is_verified(claims) {
        return Err("the provider does not say that it has verified that address".to_owned());
    }
    Ok(format!("{PREFIX}{name}"))
}

/// Whether the provider says that the address is theirs; some say it in a word.
fn is_verified(claims: &Claims) -> bool {
    match claims.get("email_verified") {
        Some(Value::Bool(is_verified)) => *is_verified,
        Some(Value::String(word)) => word == "true",
        _ => false,
    }
}

/// What they may: in each registry the most that anything the claim says gives them.
pub(super) fn roles(claims: &Claims, settings: &Settings) -> Roles {
    let said: Vec<&str> = match found(claims, &settings.roles_claim) {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let mut roles = Roles::new();
    let given = settings.roles.iter().filter(|(word, _)| *word == "*" || said.contains(&&***word));
    for (registry, role) in given.flat_map(|(_, given)| given) {
        let most = roles.entry(registry.clone()).or_insert(*role);
        *most = (*most).max(*role);
    }
    roles
}

/// A claim of this name; dots lead into objects, unless there is one with dots in its name.
fn found<'c>(claims: &'c Claims, name: &str) -> Option<&'c Value> {
    claims.get(name).or_else(|| {
        let mut parts = name.split('.');
        let first = claims.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::settings::OidcFile, *};
    use crate::auth::accounts::Role;

    fn settings(more: &str) -> Settings {
        let text = format!(
            "issuer = 'https://l'\nclientId = 'c'\n{more}\n[roles]\nops = {{ '*' = 'operator', prod = 'admin' }}\nall = {{ '*' = 'viewer', prod = 'viewer' }}"
        );
        toml::from_str::<OidcFile>(&text).unwrap().try_into().unwrap()
    }

    fn claims(value: &Value) -> Claims {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn whoever_is_in_several_groups_may_the_most_that_any_of_them_may() {
        let of = |groups: Value| roles(&claims(&json!({ "groups": groups })), &settings(""));

        let most =
            Roles::from([("*".to_owned(), Role::Operator), ("prod".to_owned(), Role::Admin)]);
        assert_eq!(of(json!(["all", "ops", "else"])), most);
        assert_eq!(of(json!("all"))["prod"], Role::Viewer);
        for nothing in
            [json!([]), json!("OPS"), json!(["*"]), json!(7), json!(null), json!({ "ops": 1 })]
        {
            assert!(of(nothing.clone()).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn a_claim_may_lie_deep_or_have_dots_in_its_name() {
        let deep = claims(&json!({ "realm_access": { "roles": ["ops"] } }));
        assert_eq!(roles(&deep, &settings("rolesClaim = 'realm_access.roles'")).len(), 2);
        let dotted = claims(&json!({ "https://example.com/groups": ["all"] }));
        assert_eq!(roles(&dotted, &settings("rolesClaim = 'https://example.com/groups'")).len(), 2);
    }

    #[test]
    fn a_name_is_never_that_of_an_account_and_an_address_has_to_be_verified() {
        let name = |value: Value, more: &str| username(&claims(&value), &settings(more));

        assert_eq!(name(json!({ "preferred_username": "admin" }), "").unwrap(), "oidc:admin");
        for wrong in [
            json!({}),
            json!({ "preferred_username": "" }),
            json!({ "preferred_username": "a\nb" }),
        ] {
            assert!(name(wrong.clone(), "").is_err(), "{wrong}");
        }
        let email = "usernameClaim = 'email'";
        for unverified in [
            json!({ "email": "a@b.c" }),
            json!({ "email": "a@b.c", "email_verified": false }),
            json!({ "email": "a@b.c", "email_verified": "false" }),
            json!({ "email": "a@b.c", "email_verified": 1 }),
        ] {
            assert!(name(unverified.clone(), email).is_err(), "{unverified}");
        }
        for verified in [json!(true), json!("true")] {
            let said = json!({ "email": "a@b.c", "email_verified": verified });
            assert_eq!(name(said, email).unwrap(), "oidc:a@b.c");
        }
    }
}
