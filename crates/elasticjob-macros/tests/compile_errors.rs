//! Compiler errors point to the mistake and give a hint.

#[test]
fn compile_errors_have_a_location_and_a_hint() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
