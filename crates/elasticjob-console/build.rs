//! The binary is built anew when the pages were: what is embedded is listed while it is compiled.

use std::path::Path;

fn main() {
    let places = ["web/dist", "web", "src"];
    let place = places.iter().find(|place| Path::new(place).exists()).unwrap_or(&"src");
    println!("cargo::rerun-if-changed={place}");
}
