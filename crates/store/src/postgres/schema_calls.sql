-- What is done with every call of a gateway, as functions: a connection plans them once, also behind a pooler that knows no names of
-- statements. The plan is the same for every owner, and stays good while tables grow: which partition it touches is found when it runs, and rows
-- are found by indexes even where a table was small when it was planned.

-- The newest session of the chain of a session, and the last message of that.
CREATE FUNCTION conversation_version(text, text)
RETURNS TABLE (tip_id text, end_seq bigint, last_id bigint, last_at_ms bigint, last_hash bytea, tip_ordinal bigint, tip_chain bigint)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    RETURN QUERY SELECT tip.id, tip.next_seq, messages.id, messages.at_ms, messages.hash, tip.ordinal, tip.chain FROM sessions AS one
    JOIN sessions AS tip ON tip.owner = $1 AND tip.chain = one.chain
    LEFT JOIN messages ON messages.owner = $1 AND messages.session = tip.ordinal AND messages.seq = tip.next_seq - 1
    WHERE one.owner = $1 AND one.id = $2 ORDER BY tip.ordinal DESC LIMIT 1;
END $$;

-- Appends messages, given as columns from $13 on, to a session that is at an expected version, and returns their numbers; nothing if it is at
-- another. The first part locks the row of the session. Whoever held it before has committed, and its columns are compared as they are then:
-- `ended_ms` and `is_tip` say whether the chain went on elsewhere. $1 is a mark of this write.
CREATE FUNCTION append_messages(
    text, text, text, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bytea, bigint[], bigint[], bigint[], bigint[],
    bigint[], bigint[], bytea[], text[], bytea[], bytea[]
) RETURNS SETOF bigint LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    RETURN QUERY WITH at AS (UPDATE sessions SET next_seq = next_seq + $6, messages = messages + $6,
    message_tokens = least(message_tokens::numeric + $7, 9223372036854775807)::int8, active_ms = greatest(active_ms, $8)
    WHERE owner = $2 AND id = $3 AND ordinal = $4 AND chain = $5 AND next_seq = $9 AND ended_ms IS NULL AND is_tip
    AND ($10::int8 IS NULL OR EXISTS (SELECT 1 FROM messages l WHERE l.owner = $2 AND l.session = $4 AND l.seq = $9 - 1
    AND l.id = $10 AND l.at_ms = $11 AND l.hash = $12)) RETURNING ordinal),
    marked AS (INSERT INTO write_marks (token) SELECT $1::text::uuid FROM at),
    new AS MATERIALIZED (SELECT nextval('message_numbers') AS id, u.* FROM at, unnest($13::int8[], $14::int8[], $15::int8[],
    $16::int8[], $17::int8[], $18::int8[], $19::bytea[], $20::text[], $21::bytea[], $22::bytea[])
    AS u (seq, role, flags, coding, at_ms, tokens, hash, tools, origin, fingerprints)),
    said AS (INSERT INTO messages (owner, session, seq, id, role, flags, coding, at_ms, tokens, hash, tools, origin)
    SELECT $2, $4, seq, id, role, flags, coding, at_ms, tokens, hash, tools, origin FROM new)
    INSERT INTO search_open (owner, kind, id, fingerprints) SELECT $2, 0, id, fingerprints FROM new RETURNING id;
END $$;

-- Records a call and counts it in its session, which is locked first, as by everybody who writes to it. Returns how many sessions and calls
-- there were: no call if its key is another's. $1 is a mark of this write.
CREATE FUNCTION record_call(
    text, text, text, text, text, text, text, bigint, bigint, bigint, bigint, bigint, boolean, text, bigint, bigint, bigint, bigint,
    bigint, text, text, bigint, text, text
) RETURNS TABLE (known_sessions bigint, recorded_calls bigint) LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    RETURN QUERY WITH at AS (SELECT ordinal FROM sessions WHERE owner = $2 AND id = $3 FOR NO KEY UPDATE),
    made AS (INSERT INTO calls (owner, session, id, key, model, provider, task, input, output, cache_read, cache_write,
    reasoning, is_estimated, usage_raw, cost_micro_usd, uncached_micro_usd, at_ms, latency_ms, first_token_ms,
    error, preamble, sent_to_seq, cache_miss, access_token) SELECT $2, at.ordinal, nextval('call_numbers'),
    $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24 FROM at
    ON CONFLICT DO NOTHING RETURNING 1),
    marked AS (INSERT INTO write_marks (token) SELECT $1::text::uuid FROM made),
    counted AS (UPDATE sessions SET calls = calls + 1, active_ms = greatest(active_ms, $17),
    input = least(input::numeric + $8, 9223372036854775807)::int8,
    output = least(output::numeric + $9, 9223372036854775807)::int8,
    cache_read = least(cache_read::numeric + $10, 9223372036854775807)::int8,
    cache_write = least(cache_write::numeric + $11, 9223372036854775807)::int8,
    reasoning = least(reasoning::numeric + $12, 9223372036854775807)::int8,
    cost_micro_usd = least(cost_micro_usd::numeric + coalesce($15, 0), 9223372036854775807)::int8,
    unpriced_calls = unpriced_calls + CASE WHEN $15 IS NULL THEN 1 ELSE 0 END
    WHERE owner = $2 AND id = $3 AND EXISTS (SELECT 1 FROM made))
    SELECT (SELECT count(*) FROM at), (SELECT count(*) FROM made);
END $$;
