"""The tables of the SQLite store. Each month has its own file of attempts, so retention drops files and deletes no
rows.

A trigger freezes final rows, and triggers update the hourly sums: no order and no repetition of deliveries makes a sum
differ from its rows. The store itself updates the sums of a batch of new rows (`summing`). Money is nano-dollars; NULL
is unknown, which sums count in `unpriced`.
"""

from __future__ import annotations

from typing import Final

from dragoman.ledger.journal.records import REASONS, STATES

#: Of the tables of both kinds of files; a file of a later one is left alone. Tables are added to and never changed: a
#: process of the version before goes on with the connection that it has.
VERSION: Final = 4


def listed(words: tuple[str, ...]) -> str:
    """Return words as a list in SQL."""
    return ",".join(f"'{word}'" for word in words)


def _one_of(name: str, words: tuple[str, ...]) -> str:
    """Return a check of a column. The first word is compared by itself, because nearly all rows have it and a look into
    the list costs a microsecond per row.
    """
    return f"CHECK ({name} = '{words[0]}' OR {name} IN ({listed(words)}))"


#: What sums are kept by.
GROUPS: Final = ("hour", "key", "owner", "team", "route", "target", "state")
SUMS: Final = ("nano", "unpriced", "input", "output", "cache_read", "cache_write", "reasoning", "attempts")

#: SQLite makes a float of a sum that has no room.
_WHOLE: Final = "CHECK (typeof({}) = 'integer')"
_ROOM: Final = ", ".join(f"{name} INTEGER NOT NULL {_WHOLE.format(name)}" for name in SUMS)
_USED: Final = f"""
  hour INTEGER NOT NULL, key TEXT NOT NULL, owner TEXT NOT NULL, team TEXT NOT NULL, route TEXT NOT NULL,
  target TEXT NOT NULL, state TEXT NOT NULL, {_ROOM}"""
_USAGE: Final = f"""
CREATE TABLE IF NOT EXISTS usage_hour({_USED}, PRIMARY KEY({", ".join(GROUPS)})) WITHOUT ROWID;
"""

#: What is added to a group's sums.
ADDED: Final = f"ON CONFLICT({', '.join(GROUPS)}) DO UPDATE SET " + ", ".join(
    f"{name} = {name} + excluded.{name}" for name in SUMS
)
_MOVE: Final = f"""
  INSERT INTO usage_hour VALUES(
    NEW.started / 3600000000, NEW.key, NEW.owner, NEW.team, NEW.route, NEW.target, NEW.state,
    coalesce(NEW.nano, 0), NEW.nano IS NULL, coalesce(NEW.input, 0), coalesce(NEW.output, 0),
    coalesce(NEW.cache_read, 0), coalesce(NEW.cache_write, 0), coalesce(NEW.reasoning, 0), 1)
  {ADDED};
"""

#: Who corrections are charged by: what a holder spent is of its own rows alone.
ADJUSTED: Final = "adjusted"
#: What was charged to accounts, by who did it: from it the counters are filled again.
_SPENT: Final = f"""account INTEGER NOT NULL, holder TEXT NOT NULL, nano INTEGER NOT NULL {_WHOLE.format("nano")},
  tokens INTEGER NOT NULL {_WHOLE.format("tokens")}"""
_SPEND: Final = f"""
CREATE TABLE IF NOT EXISTS spend({_SPENT}, PRIMARY KEY(account, holder)) WITHOUT ROWID;
"""
CHARGED: Final = (
    "ON CONFLICT(account, holder) DO UPDATE SET nano = nano + excluded.nano, tokens = tokens + excluded.tokens"
)


def tokens_of(of: str) -> str:
    """Return the SQL of what an attempt is charged in tokens. `of` is the prefix of its columns."""
    return f"coalesce({of}charged_tokens, coalesce({of}input, 0) + coalesce({of}output, 0))"


_CHARGE: Final = f"""
  INSERT INTO spend SELECT value, NEW.holder, coalesce(NEW.nano, 0), {tokens_of("NEW.")}
  FROM json_each('[' || NEW.accounts || ']') WHERE NEW.accounts <> '' {CHARGED};
"""

#: In the order of `stores.sqlite`'s rows.
COLUMNS: Final = (
    "id", "request", "ordinal", "holder", "started", "key", "owner", "team", "route", "target", "size", "accounts",
    "reserved", "expected", "client_request", "reserved_tokens",
    "ended", "state", "nano", "price", "input", "output", "cache_read", "cache_write", "reasoning", "reported",
    "reason", "status", "provider_request", "charged_tokens",
)  # fmt: skip
#: What corrections add to an attempt, for a statement that reads its columns.
ADJUSTED_NANO: Final = "(SELECT CAST(sum(nano) AS bigint) FROM :adjustment WHERE attempt = attempt.id) AS adjusted"
#: Those that a settlement sets.
SETTLED: Final = COLUMNS[COLUMNS.index("ended") :]
#: Who adds up a whole batch and says so in `summing`, inside the transaction, moves the sums alone.
_ALONE: Final = "NEW.state <> 'reserved' AND NOT EXISTS (SELECT 1 FROM summing)"
#: What most rows end as comes first.
_STATES: Final = tuple(sorted(STATES, key=lambda state: state != "settled"))

MONTH: Final = f"""
CREATE TABLE IF NOT EXISTS attempt(
  id BLOB PRIMARY KEY CHECK (length(id) = 16), request TEXT NOT NULL, ordinal INTEGER NOT NULL, holder TEXT NOT NULL,
  started INTEGER NOT NULL, key TEXT NOT NULL, owner TEXT NOT NULL, team TEXT NOT NULL, route TEXT NOT NULL,
  target TEXT NOT NULL, size INTEGER NOT NULL, accounts TEXT NOT NULL, reserved INTEGER, expected INTEGER,
  client_request TEXT NOT NULL,
  ended INTEGER, state TEXT NOT NULL {_one_of("state", _STATES)}, nano INTEGER CHECK (nano >= 0),
  price INTEGER, input INTEGER CHECK (input >= 0), output INTEGER CHECK (output >= 0), cache_read INTEGER,
  cache_write INTEGER, reasoning INTEGER, reported INTEGER NOT NULL,
  reason TEXT NOT NULL {_one_of("reason", tuple(sorted(REASONS)))}, status INTEGER,
  provider_request TEXT NOT NULL, reserved_tokens INTEGER, charged_tokens INTEGER CHECK (charged_tokens >= 0),
  CHECK ((state = 'reserved') = (ended IS NULL))) WITHOUT ROWID;
{_USAGE}
{_SPEND}
CREATE TABLE IF NOT EXISTS adjustment(
  id BLOB PRIMARY KEY CHECK (length(id) = 16), attempt BLOB NOT NULL REFERENCES attempt, nano INTEGER NOT NULL,
  prices INTEGER NOT NULL, reason TEXT NOT NULL, actor TEXT NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS summing(is_one INTEGER PRIMARY KEY);
CREATE TRIGGER IF NOT EXISTS attempt_counts AFTER INSERT ON attempt WHEN {_ALONE} BEGIN {_MOVE} {_CHARGE} END;
CREATE TRIGGER IF NOT EXISTS attempt_ends AFTER UPDATE ON attempt WHEN {_ALONE} BEGIN {_MOVE} {_CHARGE} END;
CREATE TRIGGER IF NOT EXISTS adjustment_charges AFTER INSERT ON adjustment BEGIN
  INSERT INTO spend SELECT value, '{ADJUSTED}', NEW.nano, 0
  FROM attempt, json_each('[' || attempt.accounts || ']') WHERE attempt.id = NEW.attempt {CHARGED};
END;
CREATE TRIGGER IF NOT EXISTS attempt_frozen BEFORE UPDATE ON attempt WHEN OLD.state <> 'reserved'
  OR NEW.id <> OLD.id BEGIN SELECT RAISE(ABORT, 'a final attempt does not change'); END;
CREATE TRIGGER IF NOT EXISTS attempt_stays BEFORE DELETE ON attempt
  BEGIN SELECT RAISE(ABORT, 'an attempt is not deleted'); END;
CREATE TRIGGER IF NOT EXISTS adjustment_counts AFTER INSERT ON adjustment BEGIN
  UPDATE usage_hour SET nano = usage_hour.nano + NEW.nano, unpriced = unpriced - NEW.prices
  FROM attempt WHERE attempt.id = NEW.attempt AND usage_hour.hour = attempt.started / 3600000000
    AND {" AND ".join(f"usage_hour.{name} = attempt.{name}" for name in GROUPS[1:])};
END;
CREATE TRIGGER IF NOT EXISTS adjustment_frozen BEFORE UPDATE ON adjustment
  BEGIN SELECT RAISE(ABORT, 'an adjustment does not change'); END;
CREATE TRIGGER IF NOT EXISTS adjustment_stays BEFORE DELETE ON adjustment
  BEGIN SELECT RAISE(ABORT, 'an adjustment is not deleted'); END;
"""

#: What `spend` must be, from the rows: account, holder, nano-dollars, tokens.
CHARGES: Final = f"""
SELECT account, holder, sum(nano), sum(tokens) FROM (
  SELECT value AS account, holder, coalesce(nano, 0) AS nano, {tokens_of("")} AS tokens
  FROM attempt, json_each('[' || accounts || ']') WHERE state <> 'reserved' AND accounts <> ''
  UNION ALL SELECT value, '{ADJUSTED}', adjustment.nano, 0
  FROM adjustment JOIN attempt ON attempt.id = adjustment.attempt, json_each('[' || accounts || ']'))
GROUP BY account, holder
"""

_OLDER_MONTH: Final = f"""
ALTER TABLE attempt ADD COLUMN reserved_tokens INTEGER;
ALTER TABLE attempt ADD COLUMN charged_tokens INTEGER;
DROP TRIGGER IF EXISTS attempt_counts;
DROP TRIGGER IF EXISTS attempt_ends;
DROP TRIGGER IF EXISTS attempt_charges;
DROP TRIGGER IF EXISTS attempt_charges_late;
DROP TRIGGER IF EXISTS adjustment_charges;
{_SPEND}
DELETE FROM spend;
INSERT INTO spend {CHARGES};
"""

#: What a month needs beside the tables of now, by the version it is brought up to. 3: two columns more, triggers anew,
#: and what was charged from the rows.
MONTH_STEPS: Final = {3: _OLDER_MONTH}

#: Virtual keys and quotas.
MANAGED: Final = """
CREATE TABLE IF NOT EXISTS quota(name TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS virtual_key(
  name TEXT PRIMARY KEY, owner TEXT NOT NULL, team TEXT NOT NULL, labels TEXT NOT NULL, models TEXT NOT NULL,
  routes TEXT NOT NULL, expires INTEGER, disabled INTEGER, created INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS key_digest(
  digest BLOB PRIMARY KEY CHECK (length(digest) = 32), key TEXT NOT NULL REFERENCES virtual_key, until INTEGER)
  WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS key_digest_key ON key_digest(key);
"""

#: The sums of months whose attempts were dropped, by month.
_DROPPED: Final = f"""
CREATE TABLE IF NOT EXISTS dropped_usage(
  month TEXT NOT NULL, {_USED}, PRIMARY KEY(month, {", ".join(GROUPS)})) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dropped_spend(
  month TEXT NOT NULL, {_SPENT}, PRIMARY KEY(account, holder, month)) WITHOUT ROWID;
"""

#: What is not of one month. `usage_hour` and `spend` are what version 3 and earlier made of months that it dropped.
MAIN: Final = f"""
CREATE TABLE IF NOT EXISTS price(
  id INTEGER PRIMARY KEY, target TEXT NOT NULL, source TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS set_aside(
  name TEXT PRIMARY KEY, reason TEXT NOT NULL, data BLOB NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dropped(month TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
{_USAGE}
{_SPEND}
{_DROPPED}
CREATE TABLE IF NOT EXISTS audit(
  id INTEGER PRIMARY KEY, at INTEGER NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, subject TEXT NOT NULL,
  change TEXT NOT NULL, previous BLOB NOT NULL, digest BLOB NOT NULL);
CREATE TRIGGER IF NOT EXISTS audit_frozen BEFORE UPDATE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit does not change'); END;
CREATE TRIGGER IF NOT EXISTS audit_stays BEFORE DELETE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit is not deleted'); END;
{MANAGED}"""
