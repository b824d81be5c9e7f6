-- Whoever heard no answer to a deletion asks for its receipt by the memory that it took.
CREATE INDEX jobs_by_deleted ON memory.jobs USING gin ((receipt -> 'deleted'));
