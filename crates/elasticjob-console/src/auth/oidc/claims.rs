//! Derives username and roles from an id token's claims. Pure.

use serde_json::Value;

use super::{settings::Settings, token::Claims};
use crate::auth::accounts::Roles;

/// No account name can begin with this.
const USERNAME_PREFIX: &str = "oidc:";
const MAX_NAME_CHARS: usize = 128;

/// The username in this console, or why the claim cannot be one.
pub(super) fn username(claims: &Claims, settings: &Settings) -> Result<String, String> {
    let claim = &settings.username_claim;
    let hint =
        "hint: choose another claim with oidc.usernameClaim, or request more with oidc.scopes";
    let name = find_claim(claims, claim).and_then(Value::as_str).unwrap_or_default();
    if name.is_empty() {
        return Err(format!("the provider does not send the claim {claim:?}; {hint}"));
    }
    if name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
        return Err(format!("the claim {claim:?} is not a valid username; {hint}"));
    }
    // At some providers a user may enter any address.
    if claim == "email" && !is_email_verified(claims) {
        return Err("the provider has not verified the email address".to_owned());
    }
    Ok(format!("{USERNAME_PREFIX}{name}"))
}

/// Whether the provider has verified the address; some send the flag as text.
fn is_email_verified(claims: &Claims) -> bool {
    match claims.get("email_verified") {
        Some(Value::Bool(is_email_verified)) => *is_email_verified,
        Some(Value::String(word)) => word == "true",
        _ => false,
    }
}

/// For each registry, the highest role that any value of the claim grants.
pub(super) fn roles(claims: &Claims, settings: &Settings) -> Roles {
    let groups: Vec<&str> = match find_claim(claims, &settings.roles_claim) {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let mut roles = Roles::new();
    let granted =
        settings.roles.iter().filter(|(word, _)| *word == "*" || groups.contains(&&***word));
    for (registry, role) in granted.flat_map(|(_, granted)| granted) {
        let highest = roles.entry(registry.clone()).or_insert(*role);
        *highest = (*highest).max(*role);
    }
    roles
}

/// Finds a claim by name. Dots lead into nested objects, unless a claim has that dotted name itself.
fn find_claim<'c>(claims: &'c Claims, name: &str) -> Option<&'c Value> {
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
    fn several_groups_grant_the_highest_role_of_each() {
        let of = |groups: Value| roles(&claims(&json!({ "groups": groups })), &settings(""));

        let highest =
            Roles::from([("*".to_owned(), Role::Operator), ("prod".to_owned(), Role::Admin)]);
        assert_eq!(of(json!(["all", "ops", "else"])), highest);
        assert_eq!(of(json!("all"))["prod"], Role::Viewer);
        for nothing in
            [json!([]), json!("OPS"), json!(["*"]), json!(7), json!(null), json!({ "ops": 1 })]
        {
            assert!(of(nothing.clone()).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn claim_is_found_in_nested_objects_and_under_dotted_names() {
        let deep = claims(&json!({ "realm_access": { "roles": ["ops"] } }));
        assert_eq!(roles(&deep, &settings("rolesClaim = 'realm_access.roles'")).len(), 2);
        let dotted = claims(&json!({ "https://example.com/groups": ["all"] }));
        assert_eq!(roles(&dotted, &settings("rolesClaim = 'https://example.com/groups'")).len(), 2);
    }

    #[test]
    fn username_is_prefixed_and_email_must_be_verified() {
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
            let groups = json!({ "email": "a@b.c", "email_verified": verified });
            assert_eq!(name(groups, email).unwrap(), "oidc:a@b.c");
        }
    }
}
