//! ElasticJob in Rust.
