//! Whoever is asked before something is written, run, or read outside of the folder.

use std::future::Future;
use std::pin::Pin;

use crate::approval::{Answer, Question};

/// An answer on its way.
pub type AnswerFuture<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// A person who can be asked.
pub trait Approver: Send + Sync {
    /// Asks. Dropped when the turn is called off meanwhile.
    fn ask<'a>(&'a self, question: &'a Question) -> AnswerFuture<'a>;
}

/// Says no to everything: for where nobody is there.
#[derive(Clone, Copy, Debug, Default)]
pub struct NobodyThere;

impl Approver for NobodyThere {
    fn ask<'a>(&'a self, _question: &'a Question) -> AnswerFuture<'a> {
        Box::pin(std::future::ready(Answer::Deny))
    }
}
