BEGIN TRANSACTION;
CREATE TABLE clusters (
    uuid TEXT PRIMARY KEY,
    account TEXT NOT NULL,
    id INTEGER NOT NULL,
    started_at REAL NOT NULL,
    first_received_at REAL NOT NULL,
    last_received_at REAL NOT NULL,
    boot TEXT NOT NULL DEFAULT '',
    seq INTEGER NOT NULL DEFAULT -1,
    made_at REAL NOT NULL DEFAULT 0.0,
    next_s REAL NOT NULL DEFAULT 0.0,
    phase TEXT NOT NULL DEFAULT 'running',
    reason TEXT,
    identity TEXT NOT NULL DEFAULT '{}', -- JSON, as the next two
    totals TEXT NOT NULL DEFAULT '{}',
    lost TEXT NOT NULL DEFAULT '{}',
    retired INTEGER NOT NULL DEFAULT 0,
    close_asked_at REAL,
    close_asked_by TEXT,
    close_asked_reason TEXT,
    uptime_s REAL NOT NULL DEFAULT 0.0,
    skew_s REAL,
    skew_of TEXT NOT NULL DEFAULT '',
    identity_of TEXT NOT NULL DEFAULT '',
    UNIQUE (account, id)
) STRICT;
INSERT INTO "clusters" VALUES('u1','acme',1,90.0,100.0,110.0,'b1',7,109.5,10.0,'running',NULL,'{"name":"x"}','{"n_workers":2}','{"buffer":1}',0,NULL,NULL,NULL,3.5,0.25,'b1-000000000007','b1-000000000000');
CREATE TABLE dead_letters (
    id INTEGER PRIMARY KEY,
    body TEXT NOT NULL,
    sent_at REAL NOT NULL,
    receive_count INTEGER NOT NULL,
    buried_at REAL NOT NULL,
    reason TEXT NOT NULL
) STRICT;
CREATE TABLE deleted (uuid_sha256 TEXT PRIMARY KEY, owner_sha256 TEXT NOT NULL, at REAL NOT NULL) STRICT;
CREATE TABLE deletions (
    account TEXT NOT NULL,
    cluster TEXT NOT NULL, -- empty: the whole account
    asked_at REAL NOT NULL,
    by TEXT NOT NULL,
    swept_through TEXT,
    PRIMARY KEY (account, cluster)
) STRICT;
INSERT INTO "deletions" VALUES('acme','c1',100.5,'ann',NULL);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice: a receipt names it
    body TEXT NOT NULL,
    sent_at REAL NOT NULL,
    visible_at REAL NOT NULL DEFAULT 0.0,
    receive_count INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE numbers (
    account TEXT PRIMARY KEY,
    last INTEGER NOT NULL
) STRICT;
INSERT INTO "numbers" VALUES('acme',1);
CREATE TABLE policies (account TEXT PRIMARY KEY, retention TEXT NOT NULL) STRICT;
INSERT INTO "policies" VALUES('acme','{"logs": 30, "tasks": 7}');
INSERT INTO "policies" VALUES('globex','{"events": 1}');
CREATE TABLE seals (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    day TEXT NOT NULL
) STRICT;
CREATE TABLE tokens (
    key_id TEXT PRIMARY KEY,
    secret_sha256 TEXT NOT NULL,
    account TEXT NOT NULL,
    scopes TEXT NOT NULL, -- sorted, a space between
    name TEXT NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL,
    revoked_at REAL
) STRICT;
INSERT INTO "tokens" VALUES('k1','abab','acme','ingest read','laptop',100.5,4000000000.25,NULL);
INSERT INTO "tokens" VALUES('k2','cdcd','acme','admin','old',100.5,NULL,150.0);
CREATE INDEX clusters_by_start ON clusters (account, started_at DESC, id DESC, last_received_at);
CREATE INDEX clusters_living ON clusters (uuid) WHERE phase = 'running' AND NOT retired;
CREATE INDEX tokens_by_account ON tokens (account, created_at, key_id);
DELETE FROM "sqlite_sequence";
COMMIT;
PRAGMA user_version = 4;
