"""Tables and functions of the counters in PostgreSQL, and the list of holders. Each call of the counters is one
function.

The arithmetic is that of `leases.share`, written a second time in SQL. The counters' test suite compares the two.
"""

from __future__ import annotations

from typing import Final

from dragoman.ledger.limits.accounts import TOKENS
from dragoman.ledger.limits.leases import LEASE_SECONDS, SILENT_SECONDS
from dragoman.ledger.stores.schema import ADJUSTED

#: Of what stands here; a database of a later one is used as it is, so what an earlier one asks is answered still.
VERSION: Final = "6"

TABLES: Final = f"""
CREATE TABLE IF NOT EXISTS holder(
  id text PRIMARY KEY, machine text NOT NULL, seen timestamptz NOT NULL DEFAULT clock_timestamp(), ended timestamptz);
-- Of what is served while nobody counts, the whole being `budgets.PARTS`.
ALTER TABLE holder ADD COLUMN IF NOT EXISTS part bigint NOT NULL DEFAULT 0;
CREATE TABLE IF NOT EXISTS counter_life(
  is_one boolean PRIMARY KEY DEFAULT true CHECK (is_one), epoch text NOT NULL, server text NOT NULL,
  began float8 NOT NULL);
CREATE TABLE IF NOT EXISTS counter_awaited(holder text PRIMARY KEY);
CREATE TABLE IF NOT EXISTS counter_account(
  id bigint PRIMARY KEY, life text NOT NULL, is_seeded boolean NOT NULL, closed bigint NOT NULL,
  adjusted bigint NOT NULL, quota bigint NOT NULL, generation bigint NOT NULL, until float8 NOT NULL);
CREATE TABLE IF NOT EXISTS counter_share(
  account bigint NOT NULL, holder text NOT NULL, amount bigint, number bigint NOT NULL, seen float8 NOT NULL,
  told bigint NOT NULL, PRIMARY KEY(account, holder));

-- In plpgsql, which keeps its plans: a function in SQL is planned at each call.
CREATE OR REPLACE FUNCTION counter_clock(given float8) RETURNS float8 LANGUAGE plpgsql AS $$ BEGIN
  RETURN coalesce(given, extract(epoch FROM clock_timestamp())::float8); END $$;

-- As a number: the text of a time depends on the time zone of who asks.
CREATE OR REPLACE FUNCTION counter_server() RETURNS text LANGUAGE plpgsql AS $$ BEGIN
  RETURN extract(epoch FROM pg_postmaster_start_time())::numeric::text; END $$;

CREATE OR REPLACE FUNCTION counter_epoch() RETURNS text LANGUAGE plpgsql AS $$ BEGIN
  RETURN (SELECT epoch FROM counter_life WHERE server = counter_server()); END $$;

CREATE OR REPLACE FUNCTION counter_begin(new_epoch text, awaits text[], given float8) RETURNS text
LANGUAGE plpgsql AS $$ BEGIN
  LOCK TABLE counter_life IN EXCLUSIVE MODE;
  IF counter_epoch() IS NULL THEN
    DELETE FROM counter_life; DELETE FROM counter_awaited;
    INSERT INTO counter_life VALUES(true, new_epoch, counter_server(), counter_clock(given));
    INSERT INTO counter_awaited SELECT DISTINCT unnest(awaits);
  END IF;
  RETURN counter_epoch(); END $$;

CREATE OR REPLACE FUNCTION counter_settles(given float8) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
  IF NOT EXISTS (SELECT 1 FROM counter_awaited) THEN RETURN false; END IF;
  IF counter_clock(given) >= (SELECT began FROM counter_life) + {LEASE_SECONDS} THEN
    DELETE FROM counter_awaited; RETURN false;
  END IF;
  RETURN true; END $$;

CREATE OR REPLACE FUNCTION counter_seed(
  known text, which bigint, closed_of bigint, adjusted_of bigint, who text[], used bigint[], gone text[], given float8)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE kept counter_account; BEGIN
  SELECT * INTO kept FROM counter_account WHERE id = which FOR UPDATE;
  IF kept.life IS DISTINCT FROM known OR counter_epoch() IS DISTINCT FROM known OR kept.is_seeded THEN RETURN; END IF;
  UPDATE counter_account SET is_seeded = true, adjusted = adjusted_of, closed = closed_of + coalesce((
    SELECT sum(greatest(told, seed.amount)) FROM counter_share JOIN unnest(who, used) AS seed(holder, amount)
    USING (holder) WHERE account = which AND counter_share.amount IS NULL), 0) WHERE id = which;
  UPDATE counter_share SET amount = NULL, seen = counter_clock(given) WHERE account = which AND holder = ANY(gone);
  INSERT INTO counter_share SELECT which, seed.holder, seed.amount, 0, counter_clock(given), seed.amount
    FROM unnest(who, used) AS seed(holder, amount) ON CONFLICT(account, holder) DO UPDATE
    SET amount = greatest(counter_share.amount, excluded.amount) WHERE counter_share.amount IS NOT NULL;
  INSERT INTO counter_share SELECT which, holder, NULL, 0, counter_clock(given), 0 FROM unnest(gone) AS seed(holder)
    ON CONFLICT DO NOTHING; END $$;

-- What the rows say of an account, as `roster.SharedRoster.seeds` reads it: one statement, so that all of it is of one
-- moment.
CREATE OR REPLACE FUNCTION counter_fill(known text, which bigint, given float8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM counter_seed(known, which, coalesce(sum(amount) FILTER (WHERE is_closed), 0)::bigint,
    coalesce(sum(amount) FILTER (WHERE name = '{ADJUSTED}'), 0)::bigint,
    coalesce(array_agg(name) FILTER (WHERE is_live), '{{}}'),
    coalesce(array_agg(amount) FILTER (WHERE is_live), '{{}}'),
    coalesce(array_agg(name) FILTER (WHERE has_ended), '{{}}'), given)
  FROM (
    SELECT coalesce(holder.id, used.holder) AS name, coalesce(amount, 0) AS amount,
      holder.id IS NOT NULL AND ended IS NULL AS is_live, ended IS NOT NULL AS has_ended,
      (holder.id IS NULL OR ended IS NOT NULL) AND coalesce(used.holder, '') <> '{ADJUSTED}' AS is_closed
    FROM holder FULL JOIN (
      SELECT holder, sum(CASE WHEN which & 3 = {TOKENS} THEN tokens ELSE nano END)::bigint AS amount
      FROM spend WHERE account = which GROUP BY 1) AS used ON holder.id = used.holder) AS each;
END $$;

CREATE OR REPLACE FUNCTION counter_take(
  known text, which bigint, who text, call bigint, told_now bigint, want bigint, least_of bigint, limit_of bigint,
  generation_of bigint, until_of float8, is_recorded boolean, announces boolean, given float8,
  OUT outcome text, OUT amount_now bigint, OUT is_tight boolean, OUT epoch_now text, OUT others bigint)
LANGUAGE plpgsql AS $$
DECLARE kept counter_account; mine counter_share; settles boolean; neighbours bigint; room bigint; left_over bigint;
  ahead bigint; BEGIN
  amount_now := 0; is_tight := true; others := 0; epoch_now := coalesce(counter_epoch(), '');
  IF epoch_now <> known THEN outcome := 'lost'; RETURN; END IF;
  settles := counter_settles(given);
  INSERT INTO counter_account VALUES(which, known, NOT is_recorded, 0, 0, limit_of, generation_of, until_of)
    ON CONFLICT DO NOTHING;
  SELECT * INTO kept FROM counter_account WHERE id = which FOR UPDATE;
  IF kept.life <> known THEN
    IF is_recorded THEN
      DELETE FROM counter_share WHERE account = which;
      UPDATE counter_account SET life = known, is_seeded = false, closed = 0, adjusted = 0, quota = limit_of,
        generation = generation_of, until = until_of WHERE id = which;
    ELSE UPDATE counter_account SET life = known WHERE id = which;
    END IF;
    SELECT * INTO kept FROM counter_account WHERE id = which;
  END IF;
  IF NOT (kept.is_seeded OR settles OR announces) THEN
    PERFORM counter_fill(known, which, given);
    SELECT * INTO kept FROM counter_account WHERE id = which;
  END IF;
  SELECT * INTO mine FROM counter_share WHERE account = which AND holder = who;
  IF mine.holder IS NOT NULL AND (mine.amount IS NULL OR call <= mine.number) THEN outcome := 'stale'; RETURN; END IF;
  IF settles OR (announces AND NOT kept.is_seeded) THEN
    outcome := 'settling'; amount_now := told_now;
  ELSE
    IF generation_of > kept.generation THEN
      UPDATE counter_account SET quota = limit_of, generation = generation_of WHERE id = which;
      kept.quota := limit_of;
    END IF;
    SELECT kept.closed + kept.adjusted + coalesce(sum(amount), 0), count(amount) INTO others, neighbours
      FROM counter_share WHERE account = which AND holder <> who;
    room := kept.quota - others;
    IF told_now + least_of > room THEN
      amount_now := told_now; outcome := CASE WHEN least_of > 0 THEN 'refused' ELSE 'granted' END;
    ELSE
      left_over := room - told_now - least_of; is_tight := left_over::numeric * 10 < kept.quota; ahead := 0;
      IF NOT is_tight THEN
        ahead := least(greatest(want - least_of, 0),
          CASE WHEN neighbours > 0 THEN left_over / (2 * (neighbours + 1)) ELSE left_over END);
      END IF;
      amount_now := told_now + least_of + ahead; outcome := 'granted';
    END IF;
  END IF;
  INSERT INTO counter_share VALUES(which, who, amount_now, call, counter_clock(given), told_now)
    ON CONFLICT(account, holder) DO UPDATE
    SET amount = excluded.amount, number = excluded.number, seen = excluded.seen, told = excluded.told;
  END $$;

CREATE OR REPLACE FUNCTION counter_fold(which bigint, who text, spent bigint, given float8) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE kept counter_account; is_new boolean; BEGIN
  SELECT * INTO kept FROM counter_account WHERE id = which AND life = counter_epoch() FOR UPDATE;
  IF kept.id IS NULL THEN RETURN; END IF;
  UPDATE counter_share SET amount = NULL, told = spent, seen = counter_clock(given)
    WHERE account = which AND holder = who AND amount IS NOT NULL;
  is_new := FOUND;
  IF NOT is_new AND kept.is_seeded THEN -- who never asked has what it used while nobody counted
    INSERT INTO counter_share VALUES(which, who, NULL, 0, counter_clock(given), spent) ON CONFLICT DO NOTHING;
    is_new := FOUND;
  END IF;
  IF is_new AND kept.is_seeded THEN
    UPDATE counter_account SET closed = closed + spent WHERE id = which;
  END IF; END $$;

DROP FUNCTION IF EXISTS counter_expire(bigint, text, bigint, float8); -- of version 4, which asks the next one now
CREATE OR REPLACE FUNCTION counter_expire(
  which bigint, who text, used bigint, given float8, since float8 DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE kept counter_account; BEGIN
  SELECT * INTO kept FROM counter_account WHERE id = which AND life = counter_epoch() FOR UPDATE;
  IF kept.id IS NOT NULL THEN
    IF used > 0 AND kept.is_seeded THEN
      INSERT INTO counter_share VALUES(which, who, used, 0, counter_clock(given), used) ON CONFLICT DO NOTHING;
    END IF;
    UPDATE counter_share SET amount = used WHERE account = which AND holder = who AND amount IS NOT NULL
      AND seen <= coalesce(since, counter_clock(given) - {SILENT_SECONDS});
  END IF; END $$;
"""
