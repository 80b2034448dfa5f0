//! One contract for every context engine: what `throughline plugins check` checks, held against each of them.
//!
//! Another engine is another test of one line.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use throughline_engine::{Compressor, CompressorSetup};
use throughline_lcm::{LcmEngine, LcmSetup};
use throughline_plugin::{
    CheckVerdict, ConformanceCheck, EngineBounds, HostServices, Launch, MakeEngine, PlainServices,
};

use crate::engines::{example, found_python, outline_program};

#[tokio::test(flavor = "multi_thread")]
async fn the_compressor_keeps_the_contract() {
    keeps(&|_| Arc::new(Compressor::new(CompressorSetup::by_rules()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lossless_engine_keeps_the_contract() {
    keeps(&|ground| {
        let (store, owner, host) =
            (Arc::clone(&ground.store), ground.owner.clone(), Arc::clone(&ground.host));
        Arc::new(LcmEngine::new(LcmSetup::by_rules(store, owner, host)))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn this_program_behind_its_own_protocol_keeps_the_contract() {
    let home = tempfile::tempdir().unwrap();
    let home_is = format!("THROUGHLINE_HOME={}", home.path().display());
    let arguments = [home_is.as_str(), env!("CARGO_BIN_EXE_throughline"), "engine", "--stdio"];
    process_keeps("throughline", Path::new("/usr/bin/env"), &arguments, home.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sliding_window_keeps_the_contract() {
    if found_python() {
        process_keeps("sliding-window", Path::new("python3"), &["engine.py"], &example("sliding-window"))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_outline_keeps_the_contract() {
    let (program, folder) = outline_program();
    process_keeps("outline", &program, &[], folder.path()).await;
}

/// Of an engine in this process, which is made anew for each conversation.
async fn keeps(make: MakeEngine<'_>) {
    all_passed(&ConformanceCheck::of_engine(make).await);
}

/// Of an engine in a process of its own.
async fn process_keeps(name: &str, program: &Path, arguments: &[&str], folder: &Path) {
    let launch = Launch {
        program: PathBuf::from(program),
        arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        folder: folder.to_path_buf(),
    };
    let services: Arc<dyn HostServices> = Arc::<PlainServices>::default();
    all_passed(&ConformanceCheck::of_process(name, &launch, EngineBounds::default(), &services).await);
}

fn all_passed(checks: &[ConformanceCheck]) {
    assert!(checks.len() >= 17, "{checks:?}");
    let failed: Vec<_> = checks.iter().filter(|check| check.has_failed()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let left_out = checks.iter().filter(|check| matches!(check.verdict, CheckVerdict::LeftOut { .. }));
    assert!(left_out.count() <= 3, "{checks:#?}");
}
