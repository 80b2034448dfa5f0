# Common chores. `just` lists them.

# Lists these chores
default:
    @just --list

# What has to pass before a change lands
ci:
    .ci/run

# Format, lints
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# All tests; arguments go to cargo test
test *ARGS:
    cargo test --workspace {{ ARGS }}

# Figures of the source: lines, import cycles, names
stats:
    cargo xtask stats --details

# Write golden files, snapshots and the generated reference anew; read the diff
bless:
    INSTA_UPDATE=always cargo test --workspace

# The picture of the terminal in README
picture:
    cargo xtask picture

# The book (needs mdbook)
book:
    mdbook serve docs
