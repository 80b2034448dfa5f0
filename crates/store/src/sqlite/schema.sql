-- The record, version 1. Times are milliseconds since 1970 and never give an order; ordinals, seqs and ids do.
-- Sessions are referred to by their ordinals, which are never used twice.

-- One window of a conversation each. Counters are kept here so that lists need not add messages up.
CREATE TABLE sessions (
    ordinal         INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT    NOT NULL,
    owner           TEXT    NOT NULL,
    chain           INTEGER NOT NULL,            -- ordinal of the first session of the chain
    base            INTEGER NOT NULL,            -- ordinal of the session whose view it started from
    tree            INTEGER NOT NULL,            -- ordinal of the session everything of its family hangs on
    is_tip          INTEGER NOT NULL DEFAULT 1,  -- the newest of its chain
    is_attached     INTEGER NOT NULL DEFAULT 0,  -- its chain began as a sub-agent or a side call
    parent          INTEGER,                     -- ordinal of what it hangs on
    parent_id       TEXT,
    link_kind       TEXT,
    leaves_at       INTEGER,
    first_seq       INTEGER NOT NULL,
    next_seq        INTEGER NOT NULL,
    started_ms      INTEGER NOT NULL,
    active_ms       INTEGER NOT NULL,
    ended_ms        INTEGER,
    end_reason      TEXT,
    model           TEXT,
    title           TEXT,
    title_key       TEXT,                        -- the title as it is compared
    program         TEXT    NOT NULL,
    origin_key      TEXT,
    project         TEXT,
    dialect         TEXT    NOT NULL,
    messages        INTEGER NOT NULL DEFAULT 0,
    message_tokens  INTEGER NOT NULL DEFAULT 0,
    calls           INTEGER NOT NULL DEFAULT 0,
    input           INTEGER NOT NULL DEFAULT 0,
    output          INTEGER NOT NULL DEFAULT 0,
    cache_read      INTEGER NOT NULL DEFAULT 0,
    cache_write     INTEGER NOT NULL DEFAULT 0,
    reasoning       INTEGER NOT NULL DEFAULT 0,
    cost_micro_usd  INTEGER NOT NULL DEFAULT 0,
    unpriced_calls  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX sessions_by_id ON sessions (id);
CREATE INDEX sessions_by_chain ON sessions (chain, ordinal);
CREATE INDEX sessions_by_tree ON sessions (tree, ordinal);
CREATE INDEX sessions_by_parent ON sessions (parent) WHERE parent IS NOT NULL;
CREATE INDEX sessions_by_title ON sessions (owner, title_key, ordinal) WHERE title_key IS NOT NULL;
CREATE UNIQUE INDEX sessions_by_origin ON sessions (owner, program, origin_key) WHERE origin_key IS NOT NULL;
-- What a list shows, in its order. The second leaves out what hangs on a conversation.
CREATE INDEX conversations_by_activity ON sessions (owner, active_ms, ordinal) WHERE is_tip = 1;
CREATE INDEX own_conversations_by_activity ON sessions (owner, active_ms, ordinal)
    WHERE is_tip = 1 AND is_attached = 0;

-- Numbers that are given out in runs and never twice.
CREATE TABLE numbers (
    name  TEXT PRIMARY KEY,
    next  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO numbers (name, next) VALUES ('message', 1), ('piece', 1);

-- Everything said, once, in the order of arrival. Rows are added and, with their session, deleted; never changed.
-- Their text is not kept a second time: it is read out of the origin, and only the indexes know its words.
CREATE TABLE messages (
    id       INTEGER PRIMARY KEY,
    session  INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    role     INTEGER NOT NULL,
    flags    INTEGER NOT NULL,                   -- 1: written by a program in the user's name
    at_ms    INTEGER NOT NULL,
    tokens   INTEGER NOT NULL,
    hash     BLOB    NOT NULL,
    tools    TEXT,                               -- a JSON list of names, or nothing
    coding   INTEGER NOT NULL,                   -- how the origin is packed
    origin   BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX messages_by_place ON messages (session, seq);
-- Answers how often tools were used without touching the messages.
CREATE INDEX messages_by_tool_time ON messages (at_ms, session, tools, tokens) WHERE tools IS NOT NULL;

-- Messages in other words, each once however many views show it.
CREATE TABLE renditions (
    number   INTEGER PRIMARY KEY,
    session  INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    kinds    TEXT    NOT NULL,                   -- a JSON list of names
    tokens   INTEGER NOT NULL,
    json     TEXT    NOT NULL
) STRICT;
CREATE INDEX renditions_by_place ON renditions (session, seq);

-- What the model is shown: the view of every session, item by item.
CREATE TABLE view_items (
    session      INTEGER NOT NULL,
    position     INTEGER NOT NULL,
    kind         INTEGER NOT NULL,               -- 0 range, 1 rendition, 2 summary, 3 synthetic
    of_session   INTEGER,                        -- range, rendition: the session the messages were appended to
    first_seq    INTEGER,                        -- range: the first; rendition: the place
    end_seq      INTEGER,                        -- range: after the last; nothing for one that grows
    number       INTEGER,                        -- rendition, summary: which
    name         TEXT,                           -- synthetic: what for
    json         TEXT,                           -- summary, synthetic: the message as sent
    tokens       INTEGER,                        -- summary, synthetic: its size
    PRIMARY KEY (session, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE summaries (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    session     INTEGER NOT NULL,                -- the session whose view it was made for
    created_ms  INTEGER NOT NULL,
    author      TEXT    NOT NULL,
    document    TEXT    NOT NULL,
    sources     TEXT    NOT NULL,                -- a JSON list of runs
    supersedes  INTEGER,
    facts       TEXT    NOT NULL,
    figures     TEXT    NOT NULL
) STRICT;
CREATE INDEX summaries_by_session ON summaries (session, id);

-- Preambles share their parts: tools hardly ever change, system prompts often do.
CREATE TABLE preamble_parts (
    hash   BLOB PRIMARY KEY,
    bytes  BLOB NOT NULL                         -- compressed
) STRICT, WITHOUT ROWID;
CREATE TABLE preambles (
    id          TEXT PRIMARY KEY,
    system      BLOB,
    tools       BLOB,
    parameters  BLOB
) STRICT, WITHOUT ROWID;

-- One row for every request to a model.
CREATE TABLE calls (
    id                  INTEGER PRIMARY KEY AUTOINCREMENT,
    session             INTEGER NOT NULL,
    key                 TEXT,
    model               TEXT    NOT NULL,
    provider            TEXT    NOT NULL,
    task                TEXT    NOT NULL,
    input               INTEGER NOT NULL,
    output              INTEGER NOT NULL,
    cache_read          INTEGER NOT NULL,
    cache_write         INTEGER NOT NULL,
    reasoning           INTEGER NOT NULL,
    is_estimated        INTEGER NOT NULL,
    usage_raw           TEXT,
    cost_micro_usd      INTEGER,
    uncached_micro_usd  INTEGER,
    at_ms               INTEGER NOT NULL,
    latency_ms          INTEGER,
    first_token_ms      INTEGER,
    error               TEXT,
    preamble            TEXT,
    sent_to_seq         INTEGER,
    cache_miss          TEXT
) STRICT;
CREATE INDEX calls_by_session ON calls (session, id);
CREATE UNIQUE INDEX calls_by_key ON calls (session, key) WHERE key IS NOT NULL;
CREATE INDEX calls_by_time ON calls (at_ms);

-- Small values that outlive a process. A chain is named by the ordinal of its first session, so all of it shares them.
CREATE TABLE guards (
    kind        INTEGER NOT NULL,                -- 0 chain, 1 model at an endpoint, 2 everything
    chain       INTEGER NOT NULL,
    endpoint    TEXT    NOT NULL,
    model       TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    value       TEXT    NOT NULL,
    set_ms      INTEGER NOT NULL,
    expires_ms  INTEGER,
    PRIMARY KEY (kind, chain, endpoint, model, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE locks (
    name           TEXT PRIMARY KEY,
    host           TEXT    NOT NULL,
    process_id     INTEGER NOT NULL,
    process_start  INTEGER NOT NULL,
    what           TEXT    NOT NULL,
    since_ms       INTEGER NOT NULL,
    expires_ms     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
