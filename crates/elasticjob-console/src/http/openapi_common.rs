//! Adds to every operation what all of them share: patterns of path parameters, and the responses for unauthenticated callers, invalid requests
//! and oversized or slow bodies. New operations get them automatically.

use utoipa::openapi::{
    Content, OpenApi as Document, PathItem, Ref, RefOr, Response, Schema,
    path::{Operation, Parameter, ParameterIn},
};

/// The media type of problem details.
pub(crate) const PROBLEM_MEDIA_TYPE: &str = "application/problem+json";

/// Patterns of path parameters; a value that does not match is rejected without a lookup.
const PATH_PATTERNS: [(&str, &str); 4] = [
    // The rule of `JobName`: excludes what ZooKeeper rejects and the separator of task ids.
    ("job", r"^(?!\.{1,2}$)(?!.*@-(@|$))[ -.0-~\u00a0-\ud7ff\uf900-\uffef]+$"),
    ("server", r"^(?!\.{1,2}$)[^/\u0000-\u001f\u007f-\u009f]{1,255}$"),
    ("instance", r"^(?!\.{1,2}$)[^/\u0000-\u001f\u007f-\u009f]{1,255}$"),
    ("username", r"^(?=.*[A-Za-z0-9])[A-Za-z0-9._@-]{1,64}$"),
];

/// Completes the document; problem responses get their media type.
pub(crate) fn complete(document: &mut Document) {
    for (path, item) in &mut document.paths.paths {
        for (is_safe, operation) in operations(item) {
            for parameter in operation.parameters.iter_mut().flatten() {
                add_pattern(parameter);
            }
            for response in operation.responses.responses.values_mut() {
                set_problem_media_type(response);
            }
            for (status, description) in common_responses(path, is_safe, operation) {
                let answers = &mut operation.responses.responses;
                answers.entry(status.to_owned()).or_insert_with(|| problem_response(description));
            }
        }
    }
}

/// The operations of a path, each with whether it is safe (read-only).
fn operations(item: &mut PathItem) -> impl Iterator<Item = (bool, &mut Operation)> {
    let safe = item.get.iter_mut().map(|operation| (true, operation));
    let others = [&mut item.put, &mut item.post, &mut item.patch, &mut item.delete];
    safe.chain(others.into_iter().flatten().map(|operation| (false, operation)))
}

fn common_responses(
    path: &str,
    is_safe: bool,
    operation: &Operation,
) -> Vec<(&'static str, &'static str)> {
    let is_public = operation
        .security
        .as_ref()
        .is_some_and(|requirements| requirements.contains(&<_>::default()));
    let has_parameters = operation.parameters.as_ref().is_some_and(|all| !all.is_empty());
    let has_body = operation.request_body.is_some();
    let mut responses = vec![
        ("421", "The console is not reachable under this host name"),
        (
            "429",
            "Too many wrong passwords, connections or streams; wait as long as Retry-After says",
        ),
        ("500", "Internal error"),
        ("504", "The request took too long"),
    ];
    if !is_public {
        responses.push(("401", "Not logged in"));
    }
    if !is_public || !is_safe {
        responses
            .push(("403", "The role is not sufficient, or the session's CSRF token is missing"));
    }
    if has_parameters || has_body {
        responses.push(("400", "The request cannot be parsed"));
        responses.push(("422", "The request is well-formed but invalid"));
    }
    if has_body {
        responses.push(("408", "The body did not arrive in time"));
        responses.push(("413", "The body is too large"));
        responses.push(("415", "The body is not declared as JSON"));
    }
    if path.contains('{') {
        responses.push(("404", "Not found, or not visible to the caller"));
    }
    if path.contains("/r/{registry}") {
        responses.push(("503", "The registry or its history store does not answer"));
    }
    responses
}

fn add_pattern(parameter: &mut RefOr<Parameter>) {
    let RefOr::T(parameter) = parameter else { return };
    let part = PATH_PATTERNS.iter().find(|(name, _)| *name == parameter.name);
    if let (Some((_, pattern)), ParameterIn::Path) = (part, &parameter.parameter_in)
        && let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema
    {
        schema.pattern = Some((*pattern).to_owned());
    }
}

fn set_problem_media_type(response: &mut RefOr<Response>) {
    let RefOr::T(response) = response else { return };
    let is_problem = |content: &RefOr<Content>| match content {
        RefOr::T(Content { schema: Some(RefOr::Ref(named)), .. }) => *named == problem_ref(),
        _ => false,
    };
    let content = std::mem::take(&mut response.content);
    response.content = content
        .into_iter()
        .map(|(kind, content)| {
            if is_problem(&content) {
                (PROBLEM_MEDIA_TYPE.to_owned(), content)
            } else {
                (kind, content)
            }
        })
        .collect();
}

fn problem_response(description: &str) -> RefOr<Response> {
    let mut response = Response::new(description);
    let content = Content::new(Some(RefOr::Ref(problem_ref())));
    response.content.insert(PROBLEM_MEDIA_TYPE.to_owned(), content.into());
    response.into()
}

fn problem_ref() -> Ref {
    Ref::from_schema_name("Problem")
}
