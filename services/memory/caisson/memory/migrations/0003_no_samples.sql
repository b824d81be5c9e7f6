-- Statistics are samples of what is stored, and outlive it until the next ANALYZE: what a memory says is not sampled.
ALTER TABLE memory.memories
    ALTER COLUMN external_id SET STATISTICS 0,
    ALTER COLUMN text SET STATISTICS 0,
    ALTER COLUMN subject SET STATISTICS 0,
    ALTER COLUMN attribute SET STATISTICS 0,
    ALTER COLUMN outcome SET STATISTICS 0,
    ALTER COLUMN tags SET STATISTICS 0,
    ALTER COLUMN metadata SET STATISTICS 0,
    ALTER COLUMN source SET STATISTICS 0;
ALTER TABLE memory.history ALTER COLUMN text SET STATISTICS 0;
ALTER TABLE memory.lexemes ALTER COLUMN lexemes SET STATISTICS 0;
ALTER TABLE memory.distil_texts ALTER COLUMN text SET STATISTICS 0;
