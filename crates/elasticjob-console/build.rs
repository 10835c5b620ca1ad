//! The pages are embedded: when they are built anew, so is the binary.

fn main() {
    println!("cargo::rerun-if-changed=web/dist");
}
