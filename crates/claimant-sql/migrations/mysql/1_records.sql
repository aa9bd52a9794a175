-- claimant's records: one row for each (consumer, key).
--
-- What comes from outside is binary: compared byte by byte, trailing spaces included, and free to hold any character.
-- To read a key: CONVERT(id USING utf8mb4).
-- Times are milliseconds since the epoch, except expires_at_s, which is seconds.
CREATE TABLE claimant_records (
    id            varbinary(512) NOT NULL PRIMARY KEY,
    status        varchar(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    owner         varbinary(64)  NOT NULL,
    fence         bigint         NOT NULL,
    lease_until   bigint         NOT NULL,
    attempts      bigint         NOT NULL,
    message_id    varbinary(100) NOT NULL,
    fingerprint   binary(32)     NOT NULL,
    created_at    bigint         NOT NULL,
    updated_at    bigint         NOT NULL,
    completed_at  bigint,
    expires_at_s  bigint         NOT NULL,
    result        mediumblob,
    error         varbinary(256),
    -- For deleting what expired.
    INDEX claimant_records_expiry (expires_at_s)
) ENGINE = InnoDB;
