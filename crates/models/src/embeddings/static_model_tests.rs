//! Tests of static models, on small ones that are written here.

use serde_json::json;

use super::super::testing::{TinyModel, write_tiny_model};
use super::*;

#[test]
fn vectors_are_the_mean_of_those_of_the_tokens() {
    let folder = tempfile::tempdir().unwrap();
    write_tiny_model(folder.path(), &TinyModel { words: &[("red", &[1.0, 0.0]), ("blue", &[0.0, 1.0])] });
    let model = StaticModel::read(folder.path(), None).unwrap();
    let made = model.embed(&["red blue".into(), "Red, red.".into(), "nothing known".into()]);
    assert_eq!(made.vectors, [[0.5, 0.5], [1.0, 0.0], [0.0, 0.0]]);
    assert_eq!(made.tokens, 4);
}

#[test]
fn numbers_of_all_forms_are_read() {
    for (form, bytes, expected) in [
        (NumberForm::F16, 0x3c00_u16.to_le_bytes().to_vec(), 1.0),
        (NumberForm::F16, 0xc100_u16.to_le_bytes().to_vec(), -2.5),
        (NumberForm::F16, 0x0001_u16.to_le_bytes().to_vec(), 5.960_464_5e-8),
        (NumberForm::Bf16, 0x3fc0_u16.to_le_bytes().to_vec(), 1.5),
        (NumberForm::F32, 2.5_f32.to_le_bytes().to_vec(), 2.5),
        (NumberForm::F64, 0.25_f64.to_le_bytes().to_vec(), 0.25),
        (NumberForm::I8, vec![0xfe], -2.0),
        (NumberForm::I64, 7_i64.to_le_bytes().to_vec(), 7.0),
        (NumberForm::I32, 9_i32.to_le_bytes().to_vec(), 9.0),
    ] {
        assert_eq!(form.read(&bytes), expected, "{form:?}");
    }
}

#[test]
fn weights_and_rows_of_tokens_count() {
    let tokenizer = Tokenizer::read(
        &json!({ "model": { "type": "WordPiece", "vocab": { "a": 0, "b": 1 } } }).to_string(),
    );
    let header = json!({
        "embeddings": { "dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8] },
        "weights": { "dtype": "F32", "shape": [2], "data_offsets": [8, 16] },
        "mapping": { "dtype": "I64", "shape": [2], "data_offsets": [16, 32] },
    })
    .to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes());
    [1.0_f32, 2.0, 1.0, 3.0].iter().for_each(|number| file.extend(number.to_le_bytes()));
    [0_i64, 0].iter().for_each(|number| file.extend(number.to_le_bytes()));
    let model = StaticModel::of("m".into(), file, tokenizer.unwrap()).unwrap();
    assert_eq!(model.embed(&["a b".into()]).vectors, [[2.0, 4.0]]);
}

#[test]
fn damaged_files_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let missing = StaticModel::read(folder.path(), None).unwrap_err();
    assert!(missing.contains("safetensors"), "{missing}");
    write_tiny_model(folder.path(), &TinyModel { words: &[("red", &[1.0, 0.0])] });
    let table = folder.path().join("tiny.safetensors");
    let whole = std::fs::read(&table).unwrap();
    for cut in [0, 4, 20, whole.len() - 1] {
        std::fs::write(&table, &whole[..cut]).unwrap();
        let problem = StaticModel::read(&table, None).unwrap_err();
        assert!(problem.contains("safetensors"), "{problem}");
    }
    let mut endless = whole.clone();
    endless[..8].fill(0xff);
    std::fs::write(&table, endless).unwrap();
    assert!(StaticModel::read(&table, None).is_err());
}
