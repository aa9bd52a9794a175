-- What an operator did to the record last.
ALTER TABLE claimant_records ADD COLUMN note varbinary(160);
