//! What operations have in common, described once, also for those to come: what a part of a path may be, and what is answered to a stranger, or to a body that
//! is too large.

use utoipa::openapi::{
    Content, OpenApi as Document, PathItem, Ref, RefOr, Response, Schema,
    path::{Operation, Parameter, ParameterIn},
};

/// What a problem is sent as.
pub(crate) const PROBLEM_MEDIA_TYPE: &str = "application/problem+json";

/// What parts of a path may be. More than that is not looked at before it is looked for.
const PATH_PATTERNS: [(&str, &str); 4] = [
    // As `JobName` has it: what ZooKeeper refuses is out, and what separates the parts of a task's id.
    ("job", r"^(?!\.{1,2}$)(?!.*@-(@|$))[ -.0-~\u00a0-\ud7ff\uf900-\uffef]+$"),
    ("server", r"^(?!\.{1,2}$)[^/\u0000-\u001f\u007f-\u009f]{1,255}$"),
    ("instance", r"^(?!\.{1,2}$)[^/\u0000-\u001f\u007f-\u009f]{1,255}$"),
    ("username", r"^(?=.*[A-Za-z0-9])[A-Za-z0-9._@-]{1,64}$"),
];

/// Adds that to every operation; problems are said to be sent as what they are sent as.
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

/// What there is at a path, and whether it only looks.
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
        ("421", "The console is not called so"),
        ("500", "A bug, or a registry that does not behave"),
        ("504", "It took too long"),
    ];
    if !is_public {
        responses.push(("401", "Nobody is logged in"));
        responses.push(("429", "Too many passwords were wrong; wait as long as Retry-After says"));
    }
    if !is_public || !is_safe {
        responses.push(("403", "It takes another role, or the session's CSRF token"));
    }
    if has_parameters || has_body {
        responses.push(("400", "It cannot be read"));
        responses.push(("422", "It can be read, and makes no sense"));
    }
    if has_body {
        responses.push(("413", "The body is too large"));
        responses.push(("415", "The body is not said to be JSON"));
    }
    if path.contains('{') {
        responses.push(("404", "There is no such thing, or not for whoever asks"));
    }
    if path.contains("/r/{registry}") {
        responses.push(("503", "The registry, or its history, does not answer"));
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
