"""The tables of the PostgreSQL store: those of the SQLite files (`schema`), in one schema of one database.

Attempts and their corrections are partitioned by the month of the attempt's id, so retention drops partitions and
deletes no rows. Triggers of the tables update the hourly sums, once per statement and in one order for all, so that two
concurrent deliveries wait for each other and do not deadlock.
"""

from __future__ import annotations

from typing import Final

from dragoman.ledger.journal.records import REASONS, STATES, first_id
from dragoman.ledger.stores.schema import ADJUSTED, COLUMNS, GROUPS, SUMS, listed, tokens_of

SCHEMA: Final = "dragoman"
#: Who changes tables, or writes the audit, has this advisory lock.
LOCK: Final = 0x647261_676F6D61
_LAST_MONTH: Final = "9999-12"

_TEXTS: Final = frozenset(
    ("request", "holder", "key", "owner", "team", "route", "target", "accounts", "client_request", "state", "reason",
     "provider_request")
)  # fmt: skip
_NEEDED: Final = _TEXTS | {"ordinal", "started", "size", "reported"}
#: PostgreSQL's types of `schema.COLUMNS`. Numbers have 64 bits, as SQLite's have.
TYPES: Final = {name: "uuid" if name == "id" else "text" if name in _TEXTS else "bigint" for name in COLUMNS}

_KEYS: Final = f"{', '.join(GROUPS)}, month"
_ADDED: Final = ", ".join(f"{name} = usage_hour.{name} + excluded.{name}" for name in SUMS)
_PLACES: Final = ", ".join(str(place + 1) for place in range(len(GROUPS) + 1))
_CHARGED: Final = """
  GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 ON CONFLICT(account, holder, month)
  DO UPDATE SET nano = spend.nano + excluded.nano, tokens = spend.tokens + excluded.tokens"""
_REFUSES: Final = "USING ERRCODE = 'restrict_violation'"

_TABLES: Final = f"""
CREATE TABLE meta(name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE attempt(
  {", ".join(f"{name} {kind}{' NOT NULL' if name in _NEEDED else ''}" for name, kind in TYPES.items())},
  PRIMARY KEY(id), CHECK (state IN ({listed(STATES)})), CHECK (reason IN ({listed(tuple(sorted(REASONS)))})),
  CHECK (nano >= 0), CHECK (input >= 0), CHECK (output >= 0), CHECK (charged_tokens >= 0),
  CHECK ((state = 'reserved') = (ended IS NULL))) PARTITION BY RANGE(id);
CREATE TABLE adjustment(
  id uuid NOT NULL, attempt uuid NOT NULL, nano bigint NOT NULL, prices bigint NOT NULL, reason text NOT NULL,
  actor text NOT NULL, at bigint NOT NULL, PRIMARY KEY(attempt, id)) PARTITION BY RANGE(attempt);
CREATE TABLE usage_hour(
  hour bigint NOT NULL, {", ".join(f"{name} text NOT NULL" for name in GROUPS[1:])}, month text NOT NULL,
  {", ".join(f"{name} bigint NOT NULL" for name in SUMS)}, PRIMARY KEY({_KEYS}));
CREATE TABLE spend(
  account bigint NOT NULL, holder text NOT NULL, month text NOT NULL, nano bigint NOT NULL, tokens bigint NOT NULL,
  PRIMARY KEY(account, holder, month));
CREATE TABLE price(id bigint PRIMARY KEY, target text NOT NULL, source text NOT NULL, body text NOT NULL);
CREATE TABLE set_aside(name text PRIMARY KEY, reason text NOT NULL, data bytea NOT NULL, at bigint NOT NULL);
CREATE TABLE dropped(month text PRIMARY KEY, at bigint NOT NULL);
CREATE TABLE audit(
  id bigint PRIMARY KEY, at bigint NOT NULL, actor text NOT NULL, action text NOT NULL, subject text NOT NULL,
  change text NOT NULL, previous bytea NOT NULL, digest bytea NOT NULL);

CREATE FUNCTION month_of(id uuid) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT to_char(to_timestamp(least(
    ('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 1000, 253402300799)) AT TIME ZONE 'UTC', 'YYYY-MM')
$$;
CREATE FUNCTION attempt_moves() RETURNS trigger LANGUAGE plpgsql SET search_path = {SCHEMA} AS $$ BEGIN
  INSERT INTO usage_hour({_KEYS}, {", ".join(SUMS)})
  SELECT started / 3600000000, {", ".join(GROUPS[1:])}, month_of(id), sum(coalesce(nano, 0)),
    count(*) - count(nano), {", ".join(f"sum(coalesce({name}, 0))" for name in SUMS[2:-1])}, count(*)
  FROM moved WHERE state <> 'reserved' GROUP BY {_PLACES} ORDER BY {_PLACES}
  ON CONFLICT({_KEYS}) DO UPDATE SET {_ADDED};
  INSERT INTO spend
  SELECT account::bigint, holder, month_of(id), sum(coalesce(nano, 0)), sum({tokens_of("")})
  FROM moved, unnest(string_to_array(accounts, ',')) AS account WHERE state <> 'reserved' AND accounts <> ''
  {_CHARGED};
  RETURN NULL; END $$;
CREATE FUNCTION adjustment_moves() RETURNS trigger LANGUAGE plpgsql SET search_path = {SCHEMA} AS $$ BEGIN
  UPDATE usage_hour SET nano = usage_hour.nano + given.nano, unpriced = usage_hour.unpriced - given.prices
  FROM (SELECT started / 3600000000 AS hour, {", ".join(f"attempt.{name}" for name in GROUPS[1:])},
      month_of(attempt.id) AS month, sum(added.nano) AS nano, sum(added.prices) AS prices
    FROM added JOIN attempt ON attempt.id = added.attempt GROUP BY {_PLACES}) AS given
  WHERE {" AND ".join(f"usage_hour.{name} = given.{name}" for name in (*GROUPS, "month"))};
  INSERT INTO spend SELECT account::bigint, '{ADJUSTED}', month_of(attempt.id), sum(added.nano), 0
  FROM added JOIN attempt ON attempt.id = added.attempt, unnest(string_to_array(accounts, ',')) AS account
  WHERE accounts <> '' {_CHARGED};
  RETURN NULL; END $$;
CREATE FUNCTION attempt_frozen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF OLD.state <> 'reserved' OR NEW.id <> OLD.id THEN
    RAISE EXCEPTION 'a final attempt does not change' {_REFUSES};
  END IF; RETURN NEW; END $$;
CREATE FUNCTION stays() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  RAISE EXCEPTION 'a row of % stays as it is', TG_ARGV[0] {_REFUSES}; END $$;

CREATE TRIGGER attempt_counts AFTER INSERT ON attempt REFERENCING NEW TABLE AS moved
  FOR EACH STATEMENT EXECUTE FUNCTION attempt_moves();
CREATE TRIGGER attempt_ends AFTER UPDATE ON attempt REFERENCING NEW TABLE AS moved
  FOR EACH STATEMENT EXECUTE FUNCTION attempt_moves();
CREATE TRIGGER adjustment_counts AFTER INSERT ON adjustment REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION adjustment_moves();
CREATE TRIGGER attempt_frozen BEFORE UPDATE ON attempt FOR EACH ROW EXECUTE FUNCTION attempt_frozen();
CREATE TRIGGER attempt_stays BEFORE DELETE ON attempt FOR EACH ROW EXECUTE FUNCTION stays('attempt');
CREATE TRIGGER adjustment_stays BEFORE UPDATE OR DELETE ON adjustment
  FOR EACH ROW EXECUTE FUNCTION stays('adjustment');
CREATE TRIGGER audit_stays BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION stays('audit');
INSERT INTO meta VALUES('version', '1');
"""

#: Virtual keys and quotas, as in the file of one machine.
_MANAGED: Final = """
CREATE TABLE quota(name text PRIMARY KEY, body text NOT NULL);
CREATE TABLE virtual_key(
  name text PRIMARY KEY, owner text NOT NULL, team text NOT NULL, labels text NOT NULL, models text NOT NULL,
  routes text NOT NULL, expires bigint, disabled bigint, created bigint NOT NULL);
CREATE TABLE key_digest(
  digest bytea PRIMARY KEY CHECK (length(digest) = 32), key text NOT NULL REFERENCES virtual_key, until bigint);
CREATE INDEX key_digest_key ON key_digest(key);
"""

#: How many final attempts each machine has brought, and a name that this store and its dumps have alone.
_BROUGHT: Final = """
CREATE TABLE brought(machine text PRIMARY KEY, count bigint NOT NULL, at bigint NOT NULL);
INSERT INTO meta VALUES('identity', replace(gen_random_uuid()::text, '-', ''));
"""

#: What makes tables of version 1 of none, of version 2 of these, and so on. They are added to and never changed: a
#: gateway of the version before goes on with the connection that it has.
STEPS: Final = (_TABLES, _MANAGED, _BROUGHT)
#: Of the tables; a schema of a later one is left alone.
VERSION: Final = len(STEPS)

#: As `schema.CHARGES`.
CHARGES: Final = f"""
SELECT account, holder, CAST(sum(nano) AS bigint), CAST(sum(tokens) AS bigint) FROM (
  SELECT account::bigint AS account, holder, coalesce(nano, 0) AS nano, {tokens_of("")} AS tokens
  FROM :attempt, unnest(string_to_array(accounts, ',')) AS account WHERE state <> 'reserved' AND accounts <> ''
  UNION ALL SELECT account::bigint, '{ADJUSTED}', adjustment.nano, 0
  FROM :adjustment JOIN :attempt ON attempt.id = adjustment.attempt, unnest(string_to_array(accounts, ',')) AS account
  WHERE accounts <> '') AS charge
GROUP BY account, holder
"""


def render_partitions(month: str) -> str:
    """Return the statements that create a month's (`2026-11`) partitions if they do not exist."""
    bounds = f"FROM ('{first_id(month).hex()}') TO ({_end(month)})"
    return ";\n".join(
        f"CREATE TABLE IF NOT EXISTS {partition_of(table, month)} PARTITION OF {table} FOR VALUES {bounds}"
        for table in ("attempt", "adjustment")
    )


def partition_of(table: str, month: str) -> str:
    """Return the name of a month's partition of a table."""
    return f"{table}_{month.replace('-', '_')}"


def next_month(month: str) -> str:
    """Return the next month. The calendar's last month returns itself."""
    if month >= _LAST_MONTH:
        return _LAST_MONTH
    year, number = int(month[:4]), int(month[5:])
    return f"{year + number // 12:04}-{number % 12 + 1:02}"


def _end(month: str) -> str:
    return "MAXVALUE" if month >= _LAST_MONTH else f"'{first_id(next_month(month)).hex()}'"
