-- Whoever looks for recalls that are still to be counted goes through none that are, whatever the planner saw of them.
DROP INDEX memory.retrievals_uncounted;
CREATE INDEX retrievals_uncounted ON memory.retrievals (tenant_id COLLATE "C") WHERE NOT counted;
