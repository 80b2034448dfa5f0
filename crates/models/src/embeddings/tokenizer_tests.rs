//! Tests of the three kinds of vocabularies.

use serde_json::json;

use super::*;

fn tokens(tokenizer: &Value, text: &str) -> Vec<u32> {
    Tokenizer::read(&tokenizer.to_string()).unwrap().encode(text)
}

#[test]
fn word_pieces_are_the_longest_from_the_left() {
    let tokenizer = json!({
        "normalizer": { "type": "BertNormalizer", "lowercase": true, "strip_accents": null },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "model": { "type": "WordPiece", "vocab": { "[UNK]": 0, "un": 1, "##break": 2, "##able": 3, ",": 4, "cafe": 5, "中": 6, "unbreak": 7 } }
    });
    assert_eq!(tokens(&tokenizer, "Unbreakable, Café 中"), [7, 3, 4, 5, 6]);
    assert_eq!(tokens(&tokenizer, "unknown"), Vec::<u32>::new(), "a word that does not fit has no tokens");
}

#[test]
fn pairs_are_merged_in_the_order_of_the_list() {
    let tokenizer = json!({
        "normalizer": { "type": "Sequence", "normalizers": [
            { "type": "Prepend", "prepend": "▁" },
            { "type": "Replace", "pattern": { "String": " " }, "content": "▁" }] },
        "pre_tokenizer": null,
        "model": { "type": "BPE", "byte_fallback": true,
            "vocab": { "<unk>": 0, "<0x0A>": 1, "▁": 2, "l": 3, "o": 4, "w": 5, "lo": 6, "▁lo": 7, "ow": 8, "▁low": 9, "e": 10 },
            "merges": ["l o", "▁ lo", ["▁lo", "w"], "o w"] }
    });
    assert_eq!(tokens(&tokenizer, "low lowe"), [9, 9, 10]);
    assert_eq!(tokens(&tokenizer, "low\nz"), [9, 1], "what nothing knows is left out");
}

#[test]
fn bytes_are_written_as_characters() {
    let tokenizer = json!({
        "normalizer": null,
        "pre_tokenizer": { "type": "ByteLevel" },
        "model": { "type": "BPE", "vocab": { "h": 0, "i": 1, "hi": 2, "Ġ": 3, "Ġhi": 4, "Ã": 5, "¤": 6 }, "merges": ["h i", "Ġ hi"] }
    });
    assert_eq!(tokens(&tokenizer, "hi hiä"), [2, 4, 5, 6]);
}

#[test]
fn pieces_are_the_likeliest_together() {
    let tokenizer = json!({
        "normalizer": null,
        "pre_tokenizer": { "type": "Sequence", "pretokenizers": [{ "type": "Metaspace", "replacement": "▁" }] },
        "model": { "type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["▁new", -3.0], ["▁", -4.0], ["new", -4.0], ["er", -3.0], ["▁newer", -5.0]] }
    });
    assert_eq!(tokens(&tokenizer, "newer"), [5]);
    assert_eq!(tokens(&tokenizer, "new?er"), [1, 4]);
}

#[test]
fn odd_files_are_refused_with_a_reason() {
    for (json, reason) in [
        ("nonsense", "not JSON"),
        (r#"{"model":{"type":"WordLevel","vocab":{}}}"#, "WordLevel"),
        (r#"{"model":{"type":"BPE","merges":[]}}"#, "vocabulary"),
        (r#"{"model":{"type":"BPE","vocab":{"a":"b"},"merges":[]}}"#, "number"),
    ] {
        let problem = Tokenizer::read(json).unwrap_err();
        assert!(problem.contains(reason), "{problem}");
    }
}

#[test]
fn long_words_are_cut() {
    let tokenizer = json!({ "model": { "type": "BPE", "vocab": { "a": 0, "aa": 1 }, "merges": ["a a"] } });
    assert_eq!(tokens(&tokenizer, &"a".repeat(10_000)).len(), 5_000);
}
