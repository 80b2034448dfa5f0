-- Version 2: what several gateways on one record need. A program that knows version 1 goes on beside them.

-- Locks have a number that tells one lease from the next, whatever the clocks say.
ALTER TABLE locks ADD COLUMN fence bigint NOT NULL DEFAULT 0;
CREATE SEQUENCE lock_fences CACHE 1;

-- Texts that all gateways share, such as the list of access tokens. `version` grows with every change.
CREATE TABLE shared_texts (
    name     text   COLLATE "C" PRIMARY KEY,
    version  bigint NOT NULL,
    body     text   NOT NULL
);
CREATE SEQUENCE shared_text_versions CACHE 1;

-- What happened at a gateway, for those who listen at another one; `at` is by its clock. Rows are deleted after a minute. A
-- transaction may end after one that began later, so rows are read by the number of their transaction.
CREATE UNLOGGED TABLE gateway_events (
    number       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    transaction  xid8        NOT NULL DEFAULT pg_current_xact_id(),
    kept_since   timestamptz NOT NULL DEFAULT now(),
    at           timestamptz NOT NULL,
    gateway      text        COLLATE "C" NOT NULL,
    owner        text        COLLATE "C" NOT NULL,
    event        text        NOT NULL
);
CREATE INDEX gateway_events_by_transaction ON gateway_events (transaction);
