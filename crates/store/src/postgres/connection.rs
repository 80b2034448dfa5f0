//! Connections: a pool of them, and transactions on one.
//!
//! Nothing is kept on a connection between two transactions: no prepared statement has a name, nothing is set but inside a
//! transaction, and locks end with it. So a pooler that gives every transaction another connection (pgbouncer, transaction
//! mode) works.
//!
//! A transaction sends as few times as it can. What needs no answer waits ([`Tx::later`]) and goes out with the next
//! question or with the commit; so does its beginning. Calls block: the connections live on a thread of their own, and a
//! caller waits on its own thread, inside a runtime or not.

use std::cell::{Cell, RefCell};
use std::collections::hash_map::RandomState;
use std::future::Future;
use std::hash::BuildHasher as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use deadpool_postgres::{
    Client, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime as PoolRuntime,
};
use tokio::runtime::Runtime;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{NoTls, Row, SimpleQueryMessage};

use crate::artifacts::files::ArtifactFiles;
use crate::error::{Result, StoreError};
use crate::fleet::PoolStatus;
use crate::ids::Owner;

use super::address::ServerAddress;
use super::error::{PgError, PgResult};
use super::open_lists::OpenLists;
use super::tls;
use super::value::SqlValue;

/// Waits of a transaction for a free connection, for one to be made, and for its answers.
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limits for the server, so that it does not go on with queries whose caller is gone.
const STATEMENT_TIMEOUT_MS: u32 = 50_000;
const LOCK_TIMEOUT_MS: u32 = 15_000;
/// A transaction whose client is gone lets go of what it holds after this time.
const IDLE_TIMEOUT_MS: u32 = 15_000;
/// So many writes of a process are made for each time that old marks are removed.
const FORGET_EVERY: u32 = 1_024;
const FORGET: &str = "DELETE FROM write_marks WHERE at < now() - interval '1 hour'";
/// A transaction that another one is in the way of is tried so often ...
const CONFLICT_ATTEMPTS: u32 = 8;
/// ... and one whose server is away so often: with the waits between, for about ten seconds.
const LOST_ATTEMPTS: u32 = 14;
const FIRST_WAIT: Duration = Duration::from_millis(5);
const LONGEST_WAIT: Duration = Duration::from_millis(1_500);

/// What a write carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// It waits for the disk of the server, and of its standby where there is one.
    Heavy,
    /// A figure or a guard: it reaches the disk with the next write that waits.
    Light,
}

/// A server and the connections to it.
pub(super) struct ServerPool {
    pub(super) address: ServerAddress,
    /// Large texts, where they are not in the database.
    pub(super) files: Option<ArtifactFiles>,
    /// What searches read of the index.
    open_lists: OpenLists,
    pool: Pool,
    /// Writes that were begun.
    writes: AtomicU32,
    /// Hashes the number of a write to its mark with a random key, so that no other process makes the same mark.
    marks: RandomState,
    marked: AtomicU64,
    /// `None` only while the server is dropped.
    runtime: Option<Runtime>,
}

impl std::fmt::Debug for ServerPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerPool").field("address", &self.address.shown).finish_non_exhaustive()
    }
}

impl Drop for ServerPool {
    fn drop(&mut self) {
        self.pool.close();
        if let Some(runtime) = self.runtime.take() {
            // Waiting for its threads is not allowed inside another runtime.
            runtime.shutdown_background();
        }
    }
}

impl ServerPool {
    /// Prepares connections to a server; none is made yet.
    pub(super) fn new(url: &str, connections: usize) -> Result<Self> {
        let address = ServerAddress::parse(url)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("store-connections")
            .enable_all()
            .build()
            .map_err(|error| StoreError::Database {
                what: "starting a thread for connections",
                source: Box::new(error),
            })?;
        let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = match address.wants_tls() {
            true => Manager::from_config(address.config.clone(), tls::connector(&address)?, config),
            false => Manager::from_config(address.config.clone(), NoTls, config),
        };
        let pool = Pool::builder(manager)
            .max_size(connections)
            .runtime(PoolRuntime::Tokio1)
            .wait_timeout(Some(WAIT_TIMEOUT))
            .create_timeout(Some(CONNECT_TIMEOUT))
            .recycle_timeout(Some(CONNECT_TIMEOUT))
            .build()
            .map_err(|error| StoreError::Database {
                what: "preparing connections",
                source: Box::new(error),
            })?;
        Ok(Self {
            address,
            files: None,
            open_lists: OpenLists::default(),
            pool,
            writes: AtomicU32::new(0),
            marks: RandomState::new(),
            marked: AtomicU64::new(0),
            runtime: Some(runtime),
        })
    }

    /// Waits for something that talks to the server.
    fn wait<F: Future>(&self, future: F) -> F::Output {
        // Timers and sockets belong to the runtime of the connections, whichever thread waits.
        let _context = self.runtime.as_ref().map(Runtime::enter);
        pollster::block_on(future)
    }

    /// Runs something beside the connections until it ends or the store is dropped.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(task);
        }
    }

    pub(super) fn failure(&self, error: PgError, what: &'static str) -> StoreError {
        error.into_store_error(what, &self.address.shown, &self.address.role)
    }

    /// Runs one question on whatever connection, without a transaction of its own: `work` asks no second one.
    pub(super) fn ask<T>(&self, what: &'static str, work: impl FnMut(&Tx<'_>) -> PgResult<T>) -> Result<T> {
        self.repeat(what, work, None)
    }

    /// Does `work` on a snapshot of the record.
    pub(super) fn read<T>(&self, what: &'static str, work: impl FnMut(&Tx<'_>) -> PgResult<T>) -> Result<T> {
        self.repeat(
            what,
            work,
            Some(format!(
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS}"
            )),
        )
    }

    /// Tries reads until one succeeds.
    fn repeat<T>(
        &self,
        what: &'static str,
        mut work: impl FnMut(&Tx<'_>) -> PgResult<T>,
        begin: Option<String>,
    ) -> Result<T> {
        let mut pause = Pause::default();
        loop {
            let answer = self.connect().and_then(|client| {
                let tx = Tx::new(self, client, begin.clone());
                let answer = work(&tx);
                tx.leave("COMMIT");
                answer
            });
            match answer {
                Ok(answer) => return Ok(answer),
                Err(error) if pause.after(&error) => {}
                Err(error) => return Err(self.failure(error, what)),
            }
        }
    }

    /// Does `work` in one transaction; nothing of it is stored when it fails. `work` may run several times: when another
    /// transaction was in its way, or the connection was lost.
    pub(super) fn write<T>(
        &self,
        what: &'static str,
        write: Durability,
        mut work: impl FnMut(&Tx<'_>) -> PgResult<T>,
    ) -> Result<T> {
        // The mark tells afterwards what became of the transaction, also after a crash of the server, which may give the
        // same number to another one.
        let mark = "INSERT INTO write_marks (token) VALUES (gen_random_uuid()) RETURNING token";
        let begin = begin_write(write, mark);
        self.try_to_write(what, &begin, |tx| {
            if is_forgetful(self.writes.fetch_add(1, Ordering::Relaxed)) {
                tx.later(FORGET, Vec::new());
            }
            work(tx)
        })
    }

    /// Has one statement run in a transaction of its own, all in one exchange. Its first value is a mark, which it puts into
    /// `write_marks` if it writes anything.
    pub(super) fn write_at_once(
        &self,
        what: &'static str,
        write: Durability,
        sql: &str,
        values: &[SqlValue],
    ) -> Result<WrittenAtOnce> {
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        let mut pause = Pause::default();
        loop {
            let answer = self.connect().and_then(|client| {
                let mark = self.new_mark();
                let values = [vec![mark.as_str().into()], values.to_vec()].concat();
                let tx = Tx::new(self, client, Some(begin_write(write, "")));
                if is_forgetful(number) {
                    tx.later(FORGET, Vec::new());
                }
                match tx.query_and_commit(TxStatement::Query(sql.to_owned(), values)) {
                    Ok(rows) => Ok(WrittenAtOnce::Answered(rows)),
                    Err(PgError::Lost(problem)) => match self.became_of(&mark)? {
                        TxFate::Committed => Ok(WrittenAtOnce::Unanswered),
                        TxFate::Undone => Err(PgError::Lost(problem)),
                    },
                    Err(error) => Err(error),
                }
            });
            match answer {
                Ok(answer) => return Ok(answer),
                Err(error) if pause.after(&error) => {}
                Err(error) => return Err(self.failure(error, what)),
            }
        }
    }

    /// A mark that no other write has: the digits of a UUID.
    fn new_mark(&self) -> String {
        let number = self.marked.fetch_add(1, Ordering::Relaxed);
        format!("{:016x}{:016x}", self.marks.hash_one((number, 0)), self.marks.hash_one((number, 1)))
    }

    /// The same for work that may be done again where it is not known whether it was: it leaves no mark.
    pub(super) fn prepare<T>(
        &self,
        what: &'static str,
        work: impl FnMut(&Tx<'_>) -> PgResult<T>,
    ) -> Result<T> {
        self.try_to_write(what, &begin_write(Durability::Heavy, ""), work)
    }

    fn try_to_write<T>(
        &self,
        what: &'static str,
        begin: &str,
        mut work: impl FnMut(&Tx<'_>) -> PgResult<T>,
    ) -> Result<T> {
        let mut pause = Pause::default();
        loop {
            let answer = self.connect().and_then(|client| {
                let tx = Tx::new(self, client, Some(begin.to_owned()));
                match work(&tx) {
                    Err(error) => {
                        tx.leave("ROLLBACK");
                        Err(error)
                    }
                    Ok(answer) => {
                        let mark = tx.mark.borrow().clone();
                        match (tx.commit(), mark) {
                            (Ok(()), _) => Ok(answer),
                            // A transaction that asked nothing before its commit sets values, and may set them again.
                            (Err(PgError::Lost(problem)), Some(mark)) => match self.became_of(&mark)? {
                                TxFate::Committed => Ok(answer),
                                TxFate::Undone => Err(PgError::Lost(problem)),
                            },
                            (Err(error), _) => Err(error),
                        }
                    }
                }
            });
            match answer {
                Ok(answer) => return Ok(answer),
                Err(error) if pause.after(&error) => {}
                Err(error) => return Err(self.failure(error, what)),
            }
        }
    }

    /// Whether a transaction was committed whose connection was lost before the answer came.
    fn became_of(&self, mark: &str) -> PgResult<TxFate> {
        let mut pause = Pause::default();
        loop {
            // Waits for the transaction where it still runs, and keeps it from being committed where it does not.
            let left = self.connect().and_then(|client| {
                Tx::new(self, client, None).execute(
                    "INSERT INTO write_marks (token) VALUES ($1::text::uuid) ON CONFLICT DO NOTHING",
                    vec![mark.into()],
                )
            });
            match left {
                Ok(0) => return Ok(TxFate::Committed),
                Ok(_) => return Ok(TxFate::Undone),
                Err(error) if pause.after(&error) => {}
                Err(_) => {
                    return Err(PgError::Refused(StoreError::Unreachable {
                        server: self.address.shown.clone(),
                        problem: "the connection was lost while a write was committed; whether it was stored is not known"
                            .to_owned(),
                    }));
                }
            }
        }
    }

    /// Makes sure that the server can be reached, without trying again.
    pub(super) fn reach(&self) -> Result<()> {
        self.connect().map(drop).map_err(|error| self.failure(error, "connecting"))
    }

    /// How many connections there are.
    pub(super) fn pool_status(&self) -> PoolStatus {
        let status = self.pool.status();
        PoolStatus {
            most: status.max_size as u64,
            open: status.size as u64,
            idle: u64::try_from(status.available).unwrap_or_default(),
            waiting: u64::try_from(status.waiting).unwrap_or_default(),
        }
    }

    fn connect(&self) -> PgResult<Client> {
        Ok(self.wait(self.pool.get())?)
    }
}

/// How a transaction that writes begins; `mark` is its first statement.
fn begin_write(write: Durability, mark: &str) -> String {
    let durability = match write {
        Durability::Heavy => "",
        Durability::Light => "SET LOCAL synchronous_commit = off; ",
    };
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS}; \
         SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}; SET LOCAL idle_in_transaction_session_timeout = {IDLE_TIMEOUT_MS}; \
         {durability}{mark}"
    )
}

/// Whether a write of this number removes old marks.
fn is_forgetful(number: u32) -> bool {
    number.is_multiple_of(FORGET_EVERY)
}

/// What became of a statement that is a transaction.
pub(super) enum WrittenAtOnce {
    Answered(Vec<Row>),
    /// It was committed, and its answer was lost with the connection.
    Unanswered,
}

/// What became of a transaction.
enum TxFate {
    Committed,
    Undone,
}

/// The waits between attempts.
#[derive(Default)]
struct Pause {
    attempts: u32,
}

impl Pause {
    /// Waits, and tells whether to try again after this error.
    fn after(&mut self, error: &PgError) -> bool {
        let attempts = match error {
            PgError::Lost(_) => LOST_ATTEMPTS,
            error if error.is_conflict() => CONFLICT_ATTEMPTS,
            _ => return false,
        };
        self.attempts < attempts && self.again()
    }

    fn again(&mut self) -> bool {
        if self.attempts >= LOST_ATTEMPTS {
            return false;
        }
        let wait = FIRST_WAIT.saturating_mul(1 << self.attempts.min(16)).min(LONGEST_WAIT);
        self.attempts += 1;
        std::thread::sleep(wait);
        true
    }
}

/// A statement with what it needs.
enum TxStatement {
    /// Text with commands only.
    Plain(String),
    Query(String, Vec<SqlValue>),
    Execute(String, Vec<SqlValue>),
}

enum TxAnswer {
    Plain(Vec<SimpleQueryMessage>),
    Rows(Vec<Row>),
    Count(u64),
}

impl TxStatement {
    async fn run(&self, client: &Client) -> std::result::Result<TxAnswer, tokio_postgres::Error> {
        fn typed(values: &[SqlValue]) -> Vec<(&(dyn ToSql + Sync), Type)> {
            values.iter().map(|value| (value as &(dyn ToSql + Sync), value.kind())).collect()
        }
        match self {
            Self::Plain(sql) => client.simple_query(sql).await.map(TxAnswer::Plain),
            Self::Query(sql, values) => client.query_typed(sql, &typed(values)).await.map(TxAnswer::Rows),
            Self::Execute(sql, values) => {
                client.execute_typed(sql, &typed(values)).await.map(TxAnswer::Count)
            }
        }
    }
}

/// A transaction, or a connection without one.
pub(super) struct Tx<'a> {
    server: &'a ServerPool,
    client: Option<Client>,
    /// Whether there is a transaction to end.
    is_open: bool,
    waiting: RefCell<Vec<TxStatement>>,
    has_begun: Cell<bool>,
    is_lost: Cell<bool>,
    /// What the transaction is known by afterwards, once its beginning was answered.
    mark: RefCell<Option<String>>,
}

impl<'a> Tx<'a> {
    fn new(server: &'a ServerPool, client: Client, begin: Option<String>) -> Self {
        Self {
            server,
            client: Some(client),
            is_open: begin.is_some(),
            waiting: RefCell::new(begin.map(TxStatement::Plain).into_iter().collect()),
            has_begun: Cell::new(false),
            is_lost: Cell::new(false),
            mark: RefCell::new(None),
        }
    }

    /// The large texts of an owner, where they are not in the database.
    pub(super) fn files_of(&self, owner: &Owner) -> Option<ArtifactFiles> {
        self.server.files.as_ref().map(|files| files.of_owner(owner))
    }

    /// What searches of this process read of the index.
    pub(super) fn open_lists(&self) -> &OpenLists {
        &self.server.open_lists
    }

    /// Has a statement run before the next question or with the commit; its answer is of no interest, its failure is.
    pub(super) fn later(&self, sql: impl Into<String>, values: Vec<SqlValue>) {
        self.waiting.borrow_mut().push(TxStatement::Execute(sql.into(), values));
    }

    /// As [`later`](Self::later), for a statement with rows.
    pub(super) fn query_later(&self, sql: impl Into<String>, values: Vec<SqlValue>) {
        self.waiting.borrow_mut().push(TxStatement::Query(sql.into(), values));
    }

    /// Rows of a question.
    pub(super) fn query(&self, sql: impl Into<String>, values: Vec<SqlValue>) -> PgResult<Vec<Row>> {
        match self.send(TxStatement::Query(sql.into(), values))? {
            TxAnswer::Rows(rows) => Ok(rows),
            TxAnswer::Plain(_) | TxAnswer::Count(_) => Ok(Vec::new()),
        }
    }

    /// The only row of a question, if there is one.
    pub(super) fn query_opt(&self, sql: impl Into<String>, values: Vec<SqlValue>) -> PgResult<Option<Row>> {
        Ok(self.query(sql, values)?.into_iter().next())
    }

    /// The only row of a question that always has one.
    pub(super) fn query_one(&self, sql: impl Into<String>, values: Vec<SqlValue>) -> PgResult<Row> {
        self.query_opt(sql, values)?
            .ok_or_else(|| PgError::unreadable("a question that always has an answer has none"))
    }

    /// Rows that a statement changed.
    pub(super) fn execute(&self, sql: impl Into<String>, values: Vec<SqlValue>) -> PgResult<u64> {
        match self.send(TxStatement::Execute(sql.into(), values))? {
            TxAnswer::Count(count) => Ok(count),
            TxAnswer::Rows(_) | TxAnswer::Plain(_) => Ok(0),
        }
    }

    /// Runs commands without values, several in one text.
    pub(super) fn batch(&self, sql: impl Into<String>) -> PgResult<()> {
        self.send(TxStatement::Plain(sql.into())).map(drop)
    }

    /// Rows of several questions that are sent at once; each sees what those before it did.
    pub(super) fn queries(&self, questions: Vec<(&str, Vec<SqlValue>)>) -> PgResult<Vec<Vec<Row>>> {
        let count = questions.len();
        let statements =
            questions.into_iter().map(|(sql, values)| TxStatement::Query(sql.to_owned(), values));
        let answers = self.send_all(statements.collect())?;
        let skipped = answers.len().saturating_sub(count);
        Ok(answers
            .into_iter()
            .skip(skipped)
            .map(|answer| match answer {
                TxAnswer::Rows(rows) => rows,
                TxAnswer::Plain(_) | TxAnswer::Count(_) => Vec::new(),
            })
            .collect())
    }

    /// Sends what waits and one more; gives the answer to that.
    fn send(&self, last: TxStatement) -> PgResult<TxAnswer> {
        Ok(self.send_all(vec![last])?.pop().unwrap_or(TxAnswer::Count(0)))
    }

    /// Sends what waits and some more; gives all answers.
    fn send_all(&self, more: Vec<TxStatement>) -> PgResult<Vec<TxAnswer>> {
        let Some(client) = &self.client else {
            return Err(PgError::Lost("the connection is closed".to_owned()));
        };
        if self.is_lost.get() {
            return Err(PgError::Lost("the connection is lost".to_owned()));
        }
        let mut statements = std::mem::take(&mut *self.waiting.borrow_mut());
        statements.extend(more);
        self.has_begun.set(self.is_open);
        let all = in_order(statements.iter().map(|statement| statement.run(client)));
        let answers = self.server.wait(async { tokio::time::timeout(ANSWER_TIMEOUT, all).await });
        let Ok(answers) = answers else {
            self.is_lost.set(true);
            return Err(PgError::Lost(format!("no answer within {} seconds", ANSWER_TIMEOUT.as_secs())));
        };
        let mut all = Vec::with_capacity(answers.len());
        for answer in answers {
            // What follows the first failure fails because of it.
            let answer = answer.map_err(|error| {
                let error = PgError::from(error);
                self.is_lost.set(self.is_lost.get() || matches!(error, PgError::Lost(_)));
                error
            })?;
            if let TxAnswer::Plain(messages) = &answer
                && self.mark.borrow().is_none()
            {
                *self.mark.borrow_mut() = messages.iter().find_map(|message| match message {
                    SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                    _ => None,
                });
            }
            all.push(answer);
        }
        Ok(all)
    }

    /// Sends a statement and the end of the transaction together.
    fn query_and_commit(mut self, statement: TxStatement) -> PgResult<Vec<Row>> {
        let answers = self.send_all(vec![statement, TxStatement::Plain("COMMIT".to_owned())]);
        match &answers {
            // After a failure of a statement the commit undoes everything.
            Ok(_) | Err(PgError::Server(_)) => self.has_begun.set(false),
            Err(_) => self.discard(),
        }
        let rows = answers?.into_iter().rev().find_map(|answer| match answer {
            TxAnswer::Rows(rows) => Some(rows),
            TxAnswer::Plain(_) | TxAnswer::Count(_) => None,
        });
        Ok(rows.unwrap_or_default())
    }

    fn commit(mut self) -> PgResult<()> {
        let done = self.send(TxStatement::Plain("COMMIT".to_owned())).map(drop);
        match done {
            Ok(()) => self.has_begun.set(false),
            Err(_) => self.discard(),
        }
        done
    }

    /// Ends the transaction without waiting for it, and gives the connection back.
    fn leave(mut self, how: &'static str) {
        if self.is_lost.get() {
            return self.discard();
        }
        if !self.has_begun.replace(false) {
            return;
        }
        if let (Some(client), Some(runtime)) = (self.client.take(), self.server.runtime.as_ref()) {
            runtime.spawn(async move {
                let ended = tokio::time::timeout(ANSWER_TIMEOUT, client.batch_execute(how)).await;
                if !matches!(ended, Ok(Ok(()))) {
                    drop(Object::take(client));
                }
            });
        }
    }

    /// Closes the connection, whose next answer would be undefined.
    fn discard(&mut self) {
        if let Some(client) = self.client.take() {
            drop(Object::take(client));
        }
    }
}

impl Drop for Tx<'_> {
    fn drop(&mut self) {
        // Left in the middle: the next user of the connection must not go on in this transaction.
        if self.has_begun.get() {
            self.discard();
        }
    }
}

/// Runs all futures, each sent before the next, and gives their results in order.
fn in_order<F: Future>(futures: impl Iterator<Item = F>) -> impl Future<Output = Vec<F::Output>> {
    let mut running: Vec<Pin<Box<F>>> = futures.map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    std::future::poll_fn(move |context| {
        let mut is_complete = true;
        for (future, output) in running.iter_mut().zip(&mut done) {
            if output.is_some() {
                continue;
            }
            match future.as_mut().poll(context) {
                Poll::Ready(ready) => *output = Some(ready),
                Poll::Pending => is_complete = false,
            }
        }
        match is_complete {
            true => Poll::Ready(done.iter_mut().filter_map(Option::take).collect()),
            false => Poll::Pending,
        }
    })
}
