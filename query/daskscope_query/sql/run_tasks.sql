-- reads: tasks, groups
-- The tasks of one cluster, or of one `computation` ('<boot>-<no>'), as they are drawn: the earliest `limit` of `n_rows`,
-- those of a worker together. A row without a prefix is of a group that the scheduler had forgotten.
WITH named AS (SELECT boot, no, prefix, boot || '-' || computation AS computation FROM groups WHERE cluster = $cluster),
mine AS (
    SELECT
        t.worker,
        epoch_ms(t.start_at) AS start_ms,
        t.duration_us,
        t.erred,
        t.weight,
        g.prefix,
        t.boot,
        t.no,
        count(*) OVER () AS n_rows
    FROM tasks t
    LEFT JOIN named g ON g.boot = t.boot AND g.no = t.group_no
    WHERE t.cluster = $cluster AND ($computation::VARCHAR IS NULL OR g.computation = $computation)
    ORDER BY t.start_at, t.boot, t.no
    LIMIT $limit
)
SELECT * EXCLUDE (boot, no)
FROM mine
ORDER BY worker, start_ms, boot, no
