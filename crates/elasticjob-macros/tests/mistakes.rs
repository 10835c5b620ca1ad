//! Mistakes are told by the compiler where they stand, each with a way out.

#[test]
fn mistakes_are_told_where_they_stand_with_a_way_out() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
