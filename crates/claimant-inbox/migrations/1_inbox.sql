-- claimant's inbox: one row for each message, until it is cleaned up.
--
-- What comes from outside is bytea: compared byte by byte, whatever the encoding and the collation of the database. To read
-- it: convert_from(body, 'UTF8'). Times are milliseconds since the epoch.
CREATE TABLE claimant_inbox (
    -- The order in which messages of one group came.
    id              bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Of consumer and key, as in every store of claimant: this keeps duplicates out.
    record_id       bytea   NOT NULL UNIQUE,
    consumer        text    NOT NULL,
    -- Whose messages are worked off one after the other; NULL where there is no order.
    group_name      bytea,
    event_type      bytea   NOT NULL,
    body            bytea   NOT NULL,
    fingerprint     bytea   NOT NULL,
    message_id      bytea   NOT NULL,
    trace           bytea,
    -- Of the attempt to store it.
    owner           bytea   NOT NULL,
    status          text    NOT NULL DEFAULT 'PENDING' CHECK (status IN ('PENDING', 'DONE', 'DEAD', 'DISCARDED')),
    -- Nothing of its group that came later may start.
    open            boolean NOT NULL DEFAULT true,
    -- Known to stand behind another one of its group, so nobody need look at it. Only saves work: `open` decides.
    waiting         boolean NOT NULL DEFAULT false,
    -- An attempt began and has not told how it ended.
    cut_off         boolean NOT NULL DEFAULT false,
    attempts        integer NOT NULL DEFAULT 0,
    -- Grows with each attempt, for ever: who wrote an older one has lost the row.
    fence           bigint  NOT NULL DEFAULT 0,
    next_attempt_at bigint  NOT NULL,
    received_at     bigint  NOT NULL,
    updated_at      bigint  NOT NULL,
    finished_at     bigint,
    error           bytea
);

-- For taking: only what may be taken is in it.
CREATE INDEX claimant_inbox_due ON claimant_inbox (consumer, next_attempt_at, id) WHERE status = 'PENDING' AND NOT waiting;

-- For the order within groups.
CREATE INDEX claimant_inbox_groups ON claimant_inbox (consumer, group_name, id) WHERE open AND group_name IS NOT NULL;

-- For people.
CREATE INDEX claimant_inbox_dead ON claimant_inbox (consumer, id) WHERE status = 'DEAD';

-- For cleaning up.
CREATE INDEX claimant_inbox_finished ON claimant_inbox (finished_at) WHERE status IN ('DONE', 'DISCARDED');
