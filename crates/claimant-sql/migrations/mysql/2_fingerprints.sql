-- A fingerprint is 32 bytes, or 37 where the consumer has a rule for it with a version.
ALTER TABLE claimant_records MODIFY fingerprint varbinary(37) NOT NULL;
