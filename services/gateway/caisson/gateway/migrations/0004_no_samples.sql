-- Statistics are samples of what is stored, and outlive it until the next ANALYZE: what runs say and do is not sampled.
ALTER TABLE ledger.sessions ALTER COLUMN metadata SET STATISTICS 0;
ALTER TABLE ledger.runs
    ALTER COLUMN plan SET STATISTICS 0,
    ALTER COLUMN metadata SET STATISTICS 0,
    ALTER COLUMN error SET STATISTICS 0,
    ALTER COLUMN cancel_reason SET STATISTICS 0;
ALTER TABLE ledger.steps
    ALTER COLUMN command SET STATISTICS 0,
    ALTER COLUMN outcome SET STATISTICS 0,
    ALTER COLUMN stdout SET STATISTICS 0,
    ALTER COLUMN stderr SET STATISTICS 0;
ALTER TABLE ledger.late_results ALTER COLUMN outcome SET STATISTICS 0;
ALTER TABLE ledger.events ALTER COLUMN data SET STATISTICS 0;
ALTER TABLE ledger.security_events
    ALTER COLUMN reason SET STATISTICS 0,
    ALTER COLUMN snippet SET STATISTICS 0,
    ALTER COLUMN detail SET STATISTICS 0;
ALTER TABLE ledger.idempotency
    ALTER COLUMN headers SET STATISTICS 0,
    ALTER COLUMN body SET STATISTICS 0;
