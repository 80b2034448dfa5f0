//! Tests of making vectors.

use std::sync::Mutex;

use throughline_search::meaning::{EmbedPurpose, Embedder, Embeddings, VectorStep};

use crate::sqlite::SqliteStore;
use crate::sqlite::test_home::Home;

/// Counts texts, and lets another process run meanwhile.
#[derive(Debug, Default)]
struct Counting {
    texts: Mutex<usize>,
    meanwhile: Option<Box<Meanwhile>>,
}

/// Another process: its store, and the result of its step.
struct Meanwhile {
    store: SqliteStore,
    embedder: Counting,
    step: Mutex<Option<VectorStep>>,
}

impl std::fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meanwhile")
    }
}

impl Embedder for Counting {
    fn model(&self) -> &str {
        "counting"
    }

    fn embed(&self, texts: &[String], _purpose: EmbedPurpose) -> Result<Embeddings, String> {
        *self.texts.lock().unwrap() += texts.len();
        if let Some(other) = &self.meanwhile {
            *other.step.lock().unwrap() = Some(other.store.embed_next(&other.embedder).unwrap());
        }
        Ok(Embeddings { vectors: texts.iter().map(|_| vec![1.0, 0.5]).collect(), ..Embeddings::default() })
    }
}

#[test]
fn two_processes_do_not_embed_the_same_messages() {
    let home = Home::with_messages(5);
    let other = Meanwhile { store: home.open(), embedder: Counting::default(), step: Mutex::new(None) };
    let one = Counting { meanwhile: Some(Box::new(other)), ..Counting::default() };
    let store = home.open();
    let step = store.embed_next(&one).unwrap();
    assert_eq!((step.messages, step.is_elsewhere), (5, false));
    let texts = *one.texts.lock().unwrap();
    assert!(texts > 0);
    let other = one.meanwhile.unwrap();
    assert_eq!(*other.embedder.texts.lock().unwrap(), 0);
    assert!(other.step.lock().unwrap().is_some_and(|step| step.is_elsewhere && step.messages == 0));
    // After the first has finished, the other has its turn and finds nothing left.
    let after = other.store.embed_next(&other.embedder).unwrap();
    assert_eq!((after.messages, after.is_elsewhere), (0, false));
}
