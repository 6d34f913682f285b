-- reads: computations, groups
-- How long the computations with one `fingerprint` of code took that began since `since`: `rank` is the place, from the
-- fastest on, of one that took `duration_ms`. None that ended without a task of its own is among them.
SELECT
    count(*) AS n,
    count(DISTINCT cluster) AS n_clusters,
    median(ms) AS median_ms,
    min(ms) AS least_ms,
    max(ms) AS most_ms,
    CASE WHEN $duration_ms::BIGINT IS NOT NULL THEN 1 + count(*) FILTER (ms < $duration_ms) END AS rank
FROM (
    SELECT cluster, CASE WHEN stop_at IS NOT NULL THEN greatest(epoch_ms(stop_at) - epoch_ms(start_at), 0) END AS ms
    FROM computations
    WHERE fingerprint(code) = $fingerprint
      AND start_at >= $since::TIMESTAMPTZ
      AND (
          stop_at IS NULL
          OR (cluster, boot, no) IN (SELECT (cluster, boot, computation) FROM groups WHERE computation IS NOT NULL)
      )
)
