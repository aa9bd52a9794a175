-- claimant's records: one row for each (consumer, key).
--
-- What comes from outside is bytea: compared byte by byte, whatever the encoding and the collation of the database, and
-- free to hold any character, NUL included. To read a key: convert_from(id, 'UTF8').
-- Times are milliseconds since the epoch, except expires_at_s, which is seconds.
CREATE TABLE claimant_records (
    id            bytea  NOT NULL PRIMARY KEY,
    status        text   NOT NULL CHECK (status IN ('IN_PROGRESS', 'COMPLETED', 'FAILED', 'REJECTED', 'PARKED')),
    owner         bytea  NOT NULL,
    fence         bigint NOT NULL,
    lease_until   bigint NOT NULL,
    attempts      bigint NOT NULL,
    message_id    bytea  NOT NULL,
    fingerprint   bytea  NOT NULL,
    created_at    bigint NOT NULL,
    updated_at    bigint NOT NULL,
    completed_at  bigint,
    expires_at_s  bigint NOT NULL,
    result        bytea,
    error         bytea
);

-- For deleting what expired.
CREATE INDEX claimant_records_expiry ON claimant_records (expires_at_s);
