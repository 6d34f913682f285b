-- reads: logs, members, catalog
-- Log lines of one cluster or of an account, latest first, or earliest if `ascending`; `user` is that of the cluster in
-- `catalog`. `level` is the least one, `text` a part of the line whatever its case. `workers` takes those of workers (and their nannies) by
-- address, with or without its protocol, by host or by name, and then the scheduler's only if `scheduler` says so;
-- without `workers` it has to say false to leave them out.
WITH named AS (
    SELECT cluster, id
    FROM members
    WHERE role = 'worker'
      AND (list_contains($workers::VARCHAR[], name) OR list_contains($workers::VARCHAR[], host))
)
SELECT *
FROM logs
WHERE ($cluster::VARCHAR IS NULL OR cluster = $cluster)
  AND ($user::VARCHAR IS NULL OR cluster IN (SELECT cluster FROM catalog WHERE "user" = $user))
  AND CASE
    WHEN role = 'scheduler' THEN coalesce($scheduler::BOOLEAN, $workers::VARCHAR[] IS NULL)
    WHEN $workers::VARCHAR[] IS NULL THEN true
    ELSE list_contains($workers::VARCHAR[], worker)
        OR list_contains($workers::VARCHAR[], regexp_replace(worker, '^[a-z0-9+]+://', ''))
        OR list_contains($workers::VARCHAR[], regexp_extract(worker, '://\[?([^\]]*)\]?:[0-9]+$', 1))
        OR (cluster, worker) IN (SELECT (cluster, id) FROM named)
    END
  AND ($level::INTEGER IS NULL OR level >= $level)
  AND ($role::VARCHAR IS NULL OR role = $role)
  AND ($text::VARCHAR IS NULL OR contains(lower("text"), lower($text)))
  AND ($since::TIMESTAMPTZ IS NULL OR logged_at >= $since)
  AND ($until::TIMESTAMPTZ IS NULL OR logged_at <= $until)
ORDER BY
    CASE WHEN $ascending::BOOLEAN THEN logged_at END,
    CASE WHEN $ascending::BOOLEAN THEN boot END,
    CASE WHEN $ascending::BOOLEAN THEN no END,
    logged_at DESC,
    boot DESC,
    no DESC
LIMIT $limit OFFSET $offset
