//! temporary runner
#![expect(clippy::print_stdout)]
#[path = "../src/estimate.rs"]
mod estimate;
#[path = "../src/recorded.rs"]
#[expect(dead_code)]
mod recorded;
fn main() {
    match estimate::run(std::path::Path::new(&std::env::args().nth(1).unwrap_or_default())) {
        Ok(t) => println!("{t}"),
        Err(e) => println!("ERR {e}"),
    }
}
